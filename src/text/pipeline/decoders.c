/* The decoders: each changes the text of a token on its way back to a text. They work id by id, so a stream
 * of ids gives the same text as all ids at once. Bytes that are not UTF-8 stay as they are. Must not know:
 * the model. Read next: post_processor.c. */
#include <string.h>

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/pipeline/pipeline.h"

/* The characters for bytes become bytes. A token with any other character stays as it is. */
static weft_status decode_byte_level(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                     weft__buffer *out) {
    uint32_t point;
    (void)p, (void)d;
    for (size_t at = 0; at < bytes;) {
        at += weft__read_point(text, bytes, at, &point);
        int byte = weft__bpe_byte(point);
        if (byte < 0) {
            weft__buffer_set(out, text, bytes);
            return WEFT_OK;
        }
        weft__buffer_put(out, &(char){(char)(unsigned char)byte}, 1);
    }
    return WEFT_OK;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* <0x41> becomes the byte 0x41. */
static weft_status decode_byte_fallback(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                        weft__buffer *out) {
    (void)p, (void)d;
    bool byte = bytes == 6 && memcmp(text, "<0x", 3) == 0 && text[5] == '>' && hex_digit(text[3]) >= 0 &&
                hex_digit(text[4]) >= 0;
    if (!byte)
        weft__buffer_put(out, text, bytes);
    else
        weft__buffer_put(out, &(char){(char)(16 * hex_digit(text[3]) + hex_digit(text[4]))}, 1);
    return WEFT_OK;
}

static weft_status decode_fuse(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                               weft__buffer *out) {
    (void)p, (void)d;
    weft__buffer_put(out, text, bytes);
    return WEFT_OK;
}

static weft_status refuse_fused(weft__reader *r, const weft__part *p) {
    return p->fused
               ? weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "Weft does not know it after Fuse or ByteLevel")
               : WEFT_OK;
}

/* ---- WordPiece ---- */

static weft_status read_wordpiece(weft__reader *r, const json_t *json, weft__part *p) {
    weft__buffer_set(&p->text, "##", 2);
    p->clean = true;
    WEFT_TRY(refuse_fused(r, p));
    WEFT_TRY(weft__read_text(r, json, "prefix", &p->text));
    return weft__read_bool(r, json, "cleanup", &p->clean);
}

/* Replaces each occurrence of a text in the buffer by another one that is not longer. */
static void replace_all(weft__buffer *b, const char *from, const char *to) {
    size_t size = strlen(from), used = 0;
    for (size_t at = 0; at < b->bytes;) {
        if (b->bytes - at >= size && memcmp(b->text + at, from, size) == 0) {
            memcpy(b->text + used, to, strlen(to));
            used += strlen(to);
            at += size;
        } else {
            b->text[used++] = b->text[at++];
        }
    }
    b->bytes = used;
}

static weft_status decode_wordpiece(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                    weft__buffer *out) {
    static const char *const artifacts[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    const size_t size = p->text.bytes;
    bool inner = d->count && bytes >= size && (!size || memcmp(text, p->text.text, size) == 0);
    if (d->count && !inner) weft__buffer_put(out, " ", 1);
    weft__buffer_put(out, text + (inner ? size : 0), bytes - (inner ? size : 0));
    if (out->failed || !p->clean) return WEFT_OK;
    for (size_t i = 0; i < sizeof artifacts / sizeof *artifacts; i++)
        replace_all(out, artifacts[i][0], artifacts[i][1]);
    return WEFT_OK;
}

/* ---- Metaspace ---- */

static weft_status read_metaspace(weft__reader *r, const json_t *json, weft__part *p) {
    WEFT_TRY(refuse_fused(r, p));
    for (const weft__part_type *type = weft__pre_tokenizers; type->name; type++)
        if (strcmp(type->name, "Metaspace") == 0) return type->read(r, json, p);
    return WEFT_OK;
}

static weft_status decode_metaspace(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                    weft__buffer *out) {
    const size_t size = p->text.bytes;
    bool drops = !d->count && p->prepend != WEFT__PREPEND_NEVER;
    for (size_t at = 0; at < bytes;) {
        if (bytes - at >= size && memcmp(text + at, p->text.text, size) == 0) {
            if (!drops) weft__buffer_put(out, " ", 1);
            at += size;
        } else {
            weft__buffer_put(out, text + at++, 1);
        }
    }
    return WEFT_OK;
}

/* ---- Replace, Strip, BPEDecoder ---- */

static weft_status decode_replace(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                  weft__buffer *out) {
    bool valid = true;
    uint32_t point;
    (void)d;
    for (size_t at = 0; at < bytes && valid;) { /* the bytes of ByteFallback may be a part of a character */
        int n = weft__utf8_read(text + at, bytes - at, &point);
        valid = n > 0;
        at += valid ? (size_t)n : 0;
    }
    if (valid) return weft__run_replace(p, text, bytes, out);
    weft__buffer_put(out, text, bytes);
    return WEFT_OK;
}

static weft_status read_strip(weft__reader *r, const json_t *json, weft__part *p) {
    weft__buffer_set(&p->text, " ", 1);
    WEFT_TRY(weft__read_text(r, json, "content", &p->text));
    WEFT_TRY(weft__read_size(r, json, "start", &p->start));
    WEFT_TRY(weft__read_size(r, json, "stop", &p->stop));
    if (!p->text.bytes) return weft__reader_fail(r, WEFT_ERR_FORMAT, "content must be a character");
    return p->fused && p->stop
               ? weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "stop must be 0 after Fuse or ByteLevel")
               : WEFT_OK;
}

static weft_status decode_strip(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                                weft__buffer *out) {
    const size_t size = p->text.bytes;
    size_t begin = 0, count = p->fused ? d->stripped : 0;
    bool ended = p->fused && d->stripping_ended;
    while (!ended && count < p->start && bytes - begin >= size &&
           memcmp(text + begin, p->text.text, size) == 0) {
        begin += size;
        count++;
    }
    d->stripped = count;
    d->stripping_ended = ended || begin < bytes;
    for (size_t i = 0;
         i < p->stop && bytes - begin >= size && memcmp(text + bytes - size, p->text.text, size) == 0; i++)
        bytes -= size;
    weft__buffer_put(out, text + begin, bytes - begin);
    return WEFT_OK;
}

static weft_status read_bpe(weft__reader *r, const json_t *json, weft__part *p) {
    weft__buffer_set(&p->text, "</w>", 4);
    WEFT_TRY(refuse_fused(r, p));
    return weft__read_text(r, json, "suffix", &p->text);
}

/* The suffix of a word becomes a space, unless the word is the last one. So the space waits for the next id.
 */
static weft_status decode_bpe(weft__part *p, weft__decoding *d, const char *text, size_t bytes,
                              weft__buffer *out) {
    const size_t size = p->text.bytes;
    if (d->space) weft__buffer_put(out, " ", 1);
    d->space = false;
    for (size_t at = 0; at < bytes;) {
        bool suffix = size && bytes - at >= size && memcmp(text + at, p->text.text, size) == 0;
        if (suffix && at + size == bytes)
            d->space = true;
        else if (suffix)
            weft__buffer_put(out, " ", 1);
        else
            weft__buffer_put(out, text + at, 1);
        at += suffix ? size : 1;
    }
    return WEFT_OK;
}

const weft__part_type weft__decoders[] = {
    {.name = "ByteLevel", .decode = decode_byte_level},
    {.name = "ByteFallback", .decode = decode_byte_fallback},
    {.name = "Fuse", .decode = decode_fuse},
    {.name = "WordPiece", .read = read_wordpiece, .decode = decode_wordpiece},
    {.name = "Metaspace", .read = read_metaspace, .decode = decode_metaspace},
    {.name = "Replace", .read = weft__read_replace, .decode = decode_replace},
    {.name = "Strip", .read = read_strip, .decode = decode_strip},
    {.name = "BPEDecoder", .read = read_bpe, .decode = decode_bpe},
    {0},
};
