/* Writing the journal, a line at a time. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FAASRL_VERSION
#define FAASRL_VERSION "unknown"
#endif

#define MAX_TEXT 1024

struct kept { /* what a new file has to know of an MPA */
    char *object, *recommender;
    double memory_s;
    json_t *policy; /* its last line of these; NULL: that of the installation */
};

struct journal {
    char *path, *before; /* FILE and FILE.1 */
    size_t size, max_bytes;
    struct journal_setting setting;
    struct map mpas; /* key → struct kept */
    int fd;          /* -1: it has ended */
};

/* --- lines ---------------------------------------------------------------------------------------
 */
static void end(struct journal *j, const char *what)
{
    log_error("the journal ends here: decisions go on without it", log_str("file", j->path),
              log_str("why", what));
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* A line goes out as a whole or, where the disk fails, as the last one. */
static void put(struct journal *j, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII | JOURNAL_REAL);
    json_decref(line);
    if (text == NULL)
        return;
    size_t len = strlen(text);
    text[len] = '\n'; /* in place of the end */
    if (write_all(j->fd, text, len + 1))
        j->size += len + 1;
    else
        end(j, strerror(errno));
    free(text);
}

static json_t *new_line(const char *what)
{
    char time[RFC3339_SIZE];
    time_format_micro(clock_wall_ms(), time);
    return json_pack("{s:s,s:s}", "line", what, "time", time);
}

/* begins: a controller does; else only a file. */
static void put_setting(struct journal *j, bool begins)
{
    const struct guard_limits *l = &j->setting.limits;
    json_t *line = new_line("setting");
    json_object_set_new(line, "journal", json_integer(JOURNAL_VERSION));
    json_object_set_new(line, "begins", json_boolean(begins));
    json_object_set_new(line, "version", json_string(FAASRL_VERSION));
    json_object_set_new(line, "resize_cooldown_s", journal_number(l->resize_cooldown_s));
    json_object_set_new(line, "resize_up_factor", journal_number(l->resize_up_factor));
    json_object_set_new(line, "resize_down_factor", journal_number(l->resize_down_factor));
    json_object_set_new(line, "resize_threshold", journal_number(l->resize_threshold));
    json_object_set_new(line, "default_cpu_utilization",
                        json_integer(j->setting.default_cpu_utilization));
    put(j, line);
}

/* --- files ---------------------------------------------------------------------------------------
 */
static int open_file(struct journal *j, struct error *err)
{
    struct stat about;
    j->fd = open(j->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (j->fd < 0 || fstat(j->fd, &about) < 0)
        return error_set(err, ERROR_SYSTEM, "cannot write %s: %s", j->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return error_set(err, ERROR_INVALID, "%s is no plain file", j->path);
    j->size = (size_t)about.st_size;
    return 0;
}

/* Who was killed in the middle of a line has left a part of it. */
static void mend(struct journal *j)
{
    char last = '\n';
    int fd = open(j->path, O_RDONLY | O_CLOEXEC);
    size_t size = j->size;
    while (fd >= 0 && size > 0 && pread(fd, &last, 1, (off_t)size - 1) == 1 && last != '\n')
        size--;
    if (size < j->size && ftruncate(j->fd, (off_t)size) == 0)
        j->size = size;
    if (fd >= 0)
        close(fd);
}

static void put_mpa(struct journal *j, const char *key, const char *object)
{
    json_t *line = new_line("mpa");
    json_object_set_new(line, "mpa", json_string(key));
    json_object_set_new(line, "object", json_loads(object, 0, NULL));
    put(j, line);
}

static void put_began(struct journal *j, const char *key, const struct kept *kept)
{
    json_t *line = new_line("began");
    json_object_set_new(line, "mpa", json_string(key));
    json_object_set_new(line, "recommender", json_string(kept->recommender));
    json_object_set_new(line, "memory_s", journal_number(kept->memory_s));
    put(j, line);
}

static void put_policy(struct journal *j, const struct kept *kept)
{
    if (kept->policy)
        put(j, json_incref(kept->policy));
}

static void put_kept(struct journal *j)
{
    const char *key;
    void *value;
    for (size_t i = 0; j->fd >= 0 && (i = map_next(&j->mpas, i, &key, &value)) != 0;) {
        const struct kept *kept = value;
        if (kept->object)
            put_mpa(j, key, kept->object);
        if (kept->recommender && j->fd >= 0)
            put_began(j, key, kept);
        if (j->fd >= 0)
            put_policy(j, kept);
    }
}

static void turn_over(struct journal *j)
{
    struct error err;
    close(j->fd);
    j->fd = -1;
    if (rename(j->path, j->before) < 0)
        end(j, strerror(errno));
    else if (open_file(j, &err) < 0)
        end(j, err.message);
    else
        put_setting(j, false);
    put_kept(j);
}

struct journal *journal_open(const char *path, size_t max_bytes,
                             const struct journal_setting *setting, struct error *err)
{
    struct journal *j = xcalloc(1, sizeof(*j));
    *j = (struct journal){.path = xstrdup(path),
                          .before = xasprintf("%s.1", path),
                          .max_bytes = max_bytes,
                          .setting = *setting,
                          .fd = -1};
    if (open_file(j, err) < 0) {
        journal_close(j);
        return NULL;
    }
    mend(j);
    put_setting(j, true);
    return j;
}

static void free_kept(void *value)
{
    struct kept *kept = value;
    free(kept->object);
    free(kept->recommender);
    json_decref(kept->policy);
    free(kept);
}

void journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    if (j->fd >= 0)
        close(j->fd);
    map_free(&j->mpas, free_kept);
    free(j->path);
    free(j->before);
    free(j);
}

/* --- what happens --------------------------------------------------------------------------------
 */
/* Ready for a line: it is open, and has room. */
static bool is_ready(struct journal *j)
{
    if (j && j->fd >= 0 && j->size >= j->max_bytes)
        turn_over(j);
    return j && j->fd >= 0;
}

static json_t *line_of(const char *what, const char *key)
{
    json_t *line = new_line(what);
    json_object_set_new(line, "mpa", json_string(key));
    return line;
}

static struct kept *kept_of(struct journal *j, const char *key)
{
    struct kept *kept = map_get(&j->mpas, key);
    if (kept == NULL) {
        kept = xcalloc(1, sizeof(*kept));
        map_put(&j->mpas, key, kept);
    }
    return kept;
}

/* Without what others keep in it: status is told by decisions. */
static char *plain_object(const json_t *object)
{
    cleanup_json json_t *copy = json_copy((json_t *)(uintptr_t)object);
    json_t *metadata = json_copy(json_object_get(object, "metadata"));
    json_object_del(metadata, "managedFields");
    json_object_set_new(copy, "metadata", metadata);
    json_object_del(copy, "status");
    return json_dumps(copy, JSON_COMPACT);
}

void journal_mpa(struct journal *j, const char *key, const json_t *object)
{
    if (!is_ready(j))
        return;
    struct kept *kept = kept_of(j, key);
    free(kept->object);
    kept->object = plain_object(object);
    if (kept->object)
        put_mpa(j, key, kept->object);
}

void journal_forgot(struct journal *j, const char *key)
{
    if (!is_ready(j))
        return;
    struct kept *kept = map_remove(&j->mpas, key);
    if (kept)
        free_kept(kept);
    put(j, line_of("forgot", key));
}

void journal_began(struct journal *j, const char *key, const char *recommender, double memory_s)
{
    if (!is_ready(j))
        return;
    struct kept *kept = kept_of(j, key);
    string_set(&kept->recommender, recommender);
    kept->memory_s = memory_s;
    json_decref(kept->policy);
    kept->policy = NULL;
    put_began(j, key, kept);
}

void journal_policy(struct journal *j, const char *key, const char *bytes, size_t len)
{
    if (!is_ready(j))
        return;
    struct kept *kept = kept_of(j, key);
    cleanup_free char *text = bytes ? base64_encode(bytes, len) : NULL;
    json_decref(kept->policy);
    kept->policy = line_of("policy", key);
    json_object_set_new(kept->policy, "policy",
                        text  ? json_string(text)
                        : len ? json_string("general")
                              : json_null());
    put_policy(j, kept);
}

void journal_remembered(struct journal *j, const char *key, const char *container,
                        enum recommend_resource resource, double time_s, double usage)
{
    if (!is_ready(j))
        return;
    json_t *line = line_of("remembered", key);
    json_object_set_new(line, "container", json_string(container));
    json_object_set_new(line, "resource", json_integer(resource));
    json_object_set_new(line, "time_s", journal_number(time_s));
    json_object_set_new(line, "usage", journal_number(usage));
    put(j, line);
}

void journal_decided(struct journal *j, const char *key, const struct journal_decision *d)
{
    if (!is_ready(j))
        return;
    json_t *line = line_of("decision", key);
    json_object_set_new(line, "external", json_boolean(d->external));
    json_object_set_new(line, "sizes_stay", json_boolean(d->sizes_stay));
    json_object_set_new(line, "cpu_capped", json_boolean(d->cpu_capped));
    if (d->range)
        json_object_set_new(line, "harvest",
                            json_pack("{s:i, s:o, s:o}", "state", (int)d->range->state, "low",
                                      journal_number(d->range->low), "high",
                                      journal_number(d->range->high)));
    json_object_set_new(line, "action", json_text(d->action, MAX_TEXT));
    json_object_set_new(line, "reason", json_text(d->reason, MAX_TEXT));
    json_object_set_new(line, "seen", journal_seen_json(d->seen));
    if (d->proposed) {
        json_object_set_new(line, "proposed", journal_proposed_json(d->proposed));
        json_object_set_new(line, "decided",
                            journal_decided_json(d->decided, d->seen->container_count));
    }
    put(j, line);
}

void journal_scaled(struct journal *j, const char *key, double now_s, int from, int to)
{
    if (!is_ready(j))
        return;
    json_t *line = line_of("scaled", key);
    json_object_set_new(line, "now_s", journal_number(now_s));
    json_object_set_new(line, "from", json_integer(from));
    json_object_set_new(line, "to", json_integer(to));
    put(j, line);
}

void journal_resized(struct journal *j, const char *key, double now_s)
{
    if (!is_ready(j))
        return;
    json_t *line = line_of("resized", key);
    json_object_set_new(line, "now_s", journal_number(now_s));
    put(j, line);
}
