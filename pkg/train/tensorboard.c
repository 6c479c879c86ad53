#include "train/tensorboard.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/protobuf.h"

#define MAX_BYTES 4096 /* of a record; ours have 200 */
#define RATE_SPAN_S                                                                                \
    0.1 /* over which speed is measured: rounds may be shorter than the clock's tick */

struct train_events {
    FILE *out;
    char *path;
    uint64_t steps; /* when speed was told last */
    double seconds; /* likewise; 0: no round yet */
};

/* --- records --------------------------------------------------------------------------------- */
static void store(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/* As TFRecord wants it, so that the sum of data with sums in it is no accident. */
static uint32_t masked_sum(const void *data, size_t len)
{
    uint32_t sum = checksum_crc32c(0, data, len);
    return (sum >> 15 | sum << 17) + 0xa282ead8;
}

/* Length and data, each with its sum. */
static int write_record(struct train_events *e, const struct protobuf *event, struct error *err)
{
    const struct buf *data = &event->bytes;
    uint8_t head[12], tail[4];
    store(head, data->len, 8);
    store(head + 8, masked_sum(head, 8), 4);
    store(tail, masked_sum(data->data, data->len), 4);
    fwrite(head, 1, sizeof(head), e->out);
    fwrite(data->data, 1, data->len, e->out);
    fwrite(tail, 1, sizeof(tail), e->out);
    if (event->full || fflush(e->out) != 0 || ferror(e->out))
        return error_set(err, ERROR_SYSTEM, "%s could not be written: check the disk", e->path);
    return 0;
}

/* --- messages, by the numbers of TensorFlow's event.proto and summary.proto ------------------- */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE_VALUE = 2 };

static struct protobuf new_event(void)
{
    struct protobuf event = protobuf(MAX_BYTES);
    protobuf_double(&event, EVENT_WALL_TIME, (double)clock_wall_ms() / 1000);
    return event;
}

static int write_version(struct train_events *e, struct error *err)
{
    cleanup_protobuf struct protobuf event = new_event();
    protobuf_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
    return write_record(e, &event, err);
}

static void add_value(struct protobuf *summary, const char *tag, double number)
{
    cleanup_protobuf struct protobuf value = protobuf(MAX_BYTES);
    protobuf_text(&value, VALUE_TAG, tag);
    protobuf_float(&value, VALUE_SIMPLE_VALUE, (float)number);
    protobuf_message(summary, SUMMARY_VALUE, &value);
}

/* From the first round on: what was done before may have been in another process. */
static void add_speed(struct train_events *e, const struct train_report *r,
                      struct protobuf *summary)
{
    double took_s = r->seconds - e->seconds;
    if (e->seconds > 0 && took_s < RATE_SPAN_S)
        return;
    if (e->seconds > 0)
        add_value(summary, "steps_per_second", (double)(r->steps - e->steps) / took_s);
    e->steps = r->steps;
    e->seconds = fmax(r->seconds, 1e-3);
}

int train_events_add(struct train_events *e, const struct train_report *r, struct error *err)
{
    cleanup_protobuf struct protobuf event = new_event(), summary = protobuf(MAX_BYTES);
    add_value(&summary, "reward", r->reward);
    add_value(&summary, "slo_preservation", r->slo_preservation);
    add_value(&summary, "cpu_utilization", r->cpu_utilization);
    add_value(&summary, "violation_ratio", r->violation_ratio);
    add_speed(e, r, &summary);
    protobuf_number(&event, EVENT_STEP, r->episodes);
    protobuf_message(&event, EVENT_SUMMARY, &summary);
    return write_record(e, &event, err);
}

/* --- files ----------------------------------------------------------------------------------- */
void train_events_close(struct train_events *e)
{
    if (e == NULL)
        return;
    if (e->out)
        fclose(e->out);
    free(e->path);
    free(e);
}

/* The name tells TensorBoard what it is; the rest keeps one run's file apart from the next one's.
 */
struct train_events *train_events_open(const char *directory, struct error *err)
{
    if (mkdir(directory, 0777) < 0 && errno != EEXIST) {
        error_set(err, ERROR_SYSTEM, "%s cannot be made: %s", directory, strerror(errno));
        return NULL;
    }
    struct train_events *e = xcalloc(1, sizeof(*e));
    e->path = xasprintf("%s/events.out.tfevents.%lld.faasrl-mpa.%d", directory,
                        (long long)(clock_wall_ms() / 1000), (int)getpid());
    e->out = fopen(e->path, "we");
    if (e->out == NULL)
        error_set(err, ERROR_SYSTEM, "%s cannot be written: %s", e->path, strerror(errno));
    if (e->out && write_version(e, err) == 0)
        return e;
    train_events_close(e);
    return NULL;
}
