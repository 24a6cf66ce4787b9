/* Writes and reads TensorBoard events: protobuf messages in TFRecord frames:
 *
 *     length (8 bytes) | checksum of the length (4) | message | checksum of the message (4)
 *
 * Numbers are little-endian. Checksums are CRC-32C, masked as the format prescribes. Must not know: when
 * steps are logged. Read next: run_dir.c. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <events.pb-c.h> /* made from events.proto by the build */

#include "io/publish.h"
#include "train/run/events.h"

#define RECORD_MAX (64 + WEFT__METRICS * 96)

/* Computes CRC-32C (Castagnoli) bit by bit. Records are short and rare, so speed does not matter. */
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

static void put_le(uint8_t *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *in, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)in[i] << 8 * i;
    return value;
}

static weft_status write_event(int fd, const WeftEvents__Event *event) {
    uint8_t record[RECORD_MAX];
    size_t size = weft_events__event__get_packed_size(event);
    if (size > sizeof record - 16)
        return weft__fail(NULL, WEFT_ERR_INTERNAL, "an event of %zu bytes is too large", size);
    weft_events__event__pack(event, record + 12);
    put_le(record, size, 8);
    put_le(record + 8, masked(crc32c(record, 8)), 4);
    put_le(record + 12 + size, masked(crc32c(record + 12, size)), 4);
    return weft__write_all(NULL, fd, WEFT__EVENTS_FILE, record, size + 16);
}

weft_status weft__events_append(int fd, const weft__metrics *m, bool tokens, double wall_time) {
    WeftEvents__Value values[WEFT__METRICS], *list[WEFT__METRICS];
    WeftEvents__Summary summary = WEFT_EVENTS__SUMMARY__INIT;
    struct stat info;
    if (fstat(fd, &info) != 0) return weft__fail_io(NULL, "access", WEFT__EVENTS_FILE, errno);
    if (info.st_size == 0) {
        WeftEvents__Event first = WEFT_EVENTS__EVENT__INIT;
        char version[] = "brain.Event:2";
        first.wall_time = wall_time;
        first.file_version = version;
        WEFT_TRY(write_event(fd, &first));
    }
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        const char *tag = weft__metric_word(metric->tag, tokens);
        const double number = weft__metric_get(m, metric);
        if (!tag || !isfinite(number)) continue;
        WeftEvents__Value *value = &values[summary.n_value];
        weft_events__value__init(value);
        memcpy(&value->tag, &tag, sizeof value->tag); /* protobuf-c only reads the tag */
        value->value_case = WEFT_EVENTS__VALUE__VALUE_SIMPLE_VALUE;
        value->simple_value = (float)number;
        list[summary.n_value++] = value;
    }
    summary.value = list;
    WeftEvents__Event event = WEFT_EVENTS__EVENT__INIT;
    event.wall_time = wall_time;
    event.step = (int64_t)m->step;
    event.summary = &summary;
    return write_event(fd, &event);
}

/* Memory for protobuf-c. A failed allocation is noted, because the message is also NULL for a malformed
 * record. */
static void *events_take(void *failed, size_t bytes) {
    void *p = weft__alloc(NULL, bytes);
    if (!p) *(bool *)failed = true;
    return p;
}

static void give(void *failed, void *p) {
    (void)failed;
    weft__free(NULL, p);
}

weft_status weft__events_until(const uint8_t *bytes, size_t size, uint64_t step, size_t *end) {
    bool failed = false;
    ProtobufCAllocator memory = {events_take, give, &failed};
    size_t at = 0;
    while (size - at >= 16) {
        uint64_t length = get_le(bytes + at, 8);
        if (length > size - at - 16 || length > RECORD_MAX) break;
        const uint8_t *head = bytes + at, *record = head + 12;
        if (get_le(head + 8, 4) != masked(crc32c(head, 8)) ||
            get_le(record + length, 4) != masked(crc32c(record, (size_t)length)))
            break; /* TensorBoard stops reading here too */
        WeftEvents__Event *event = weft_events__event__unpack(&memory, (size_t)length, record);
        bool later = !event || event->step < 0 || (uint64_t)event->step > step;
        if (event) weft_events__event__free_unpacked(event, &memory);
        if (failed) return weft__fail_oom(NULL, (size_t)length, "the TensorBoard events");
        if (later) break;
        at += (size_t)length + 16;
    }
    *end = at;
    return WEFT_OK;
}
