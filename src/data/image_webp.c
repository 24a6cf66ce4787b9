/* Decodes WebP files with libwebp, if Weft was built with it. Must not know: folders. Read next:
 * image_exif.c. */
#include "data/image_formats.h"

#ifdef WEFT_HAS_WEBP
#include <webp/decode.h>

static const char *why(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return "out of memory"; /* weft__image_damaged recognises it */
    case VP8_STATUS_NOT_ENOUGH_DATA: return "its end is missing";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it has a feature that libwebp does not read";
    default: return "it is not valid WebP";
    }
}

weft_status weft__decode_webp(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: the installed libwebp is older than the one that Weft was built with: build Weft again",
            file->name);
    VP8StatusCode code = WebPGetFeatures(file->bytes, file->size, &config.input);
    if (code != VP8_STATUS_OK) return weft__image_damaged(ctx, file, why(code));
    if (config.input.has_animation)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: this is an animation: save one of its pictures as an image", file->name);
    WEFT_TRY(weft__image_new(ctx, file, config.input.height, config.input.width, 3,
                             file->channels ? file->channels : 3, out));
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->pixels;
    config.output.u.RGBA.stride = (int)out->columns * 3;
    config.output.u.RGBA.size = (size_t)(out->rows * out->columns * 3);
    code = WebPDecode(file->bytes, file->size, &config);
    WebPFreeDecBuffer(&config.output);
    if (code != VP8_STATUS_OK) {
        weft__image_free(ctx, out);
        return weft__image_damaged(ctx, file, why(code));
    }
    weft__image_pack(out, 3);
    return WEFT_OK;
}

#else

weft_status weft__decode_webp(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    (void)out;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this is a WebP image, and this Weft was built without libwebp: install "
                      "libwebp-dev and build Weft again, or convert the image",
                      file->name);
}

#endif
