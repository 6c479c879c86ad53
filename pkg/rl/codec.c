/* The bytes of a checkpoint. Each code_… function both reads and writes its part, so that the
 * format stands here once. */
#include "base/memory.h"
#include "rl/checkpoint.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static const char magic[8] = {'F', 'A', 'A', 'S', 'R', 'L', 'C', 'P'};
enum { HASH_SIZE = 32, HEADER_SIZE = 8 + 4 + 8 + HASH_SIZE };

struct codec {
    struct buf *out;   /* NULL: reads */
    const uint8_t *in; /* what is left to read */
    size_t left;
    struct error *err;
};

/* --- numbers, lowest byte first -------------------------------------------------------------- */
static int code_bytes(struct codec *c, void *data, size_t len)
{
    if (c->out && buf_append(c->out, data, len) < 0)
        return error_set(c->err, ERROR_TOO_LARGE, "a checkpoint can have at most %zu bytes",
                         c->out->max);
    if (c->out)
        return 0;
    if (len > c->left)
        return error_set(c->err, ERROR_INVALID, "it ends too early");
    memcpy(data, c->in, len);
    c->in += len;
    c->left -= len;
    return 0;
}

static int write_number(struct codec *c, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    return code_bytes(c, bytes, size);
}

static int read_number(struct codec *c, uint64_t *value, size_t size)
{
    uint8_t bytes[8] = {0};
    if (code_bytes(c, bytes, size) < 0)
        return -1;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)bytes[i] << (8 * i);
    return 0;
}

static int code_u64(struct codec *c, uint64_t *value)
{
    return c->out ? write_number(c, *value, 8) : read_number(c, value, 8);
}

/* Of 4 bytes, low to high. */
static int code_size(struct codec *c, size_t *value, size_t low, size_t high, const char *what)
{
    uint64_t number = *value;
    if (c->out == NULL && read_number(c, &number, 4) < 0)
        return -1;
    if (number < low || number > high)
        return error_set(c->err, ERROR_INVALID, "%s: %llu, must be %zu to %zu", what,
                         (unsigned long long)number, low, high);
    if (c->out)
        return write_number(c, number, 4);
    *value = (size_t)number;
    return 0;
}

/* What is no number is refused, on either way. */
static int code_float(struct codec *c, float *value)
{
    uint32_t bits;
    uint64_t number = 0;
    memcpy(&bits, value, sizeof(bits));
    if (c->out ? write_number(c, bits, 4) < 0 : read_number(c, &number, 4) < 0)
        return -1;
    if (c->out == NULL) {
        bits = (uint32_t)number;
        memcpy(value, &bits, sizeof(bits));
    }
    return isfinite(*value) ? 0
                            : error_set(c->err, ERROR_INVALID, "one of its weights is %g", *value);
}

/* Fails before anything is allocated for what cannot be there. */
static int expect(const struct codec *c, size_t count, size_t size)
{
    if (c->out || count <= c->left / size)
        return 0;
    return error_set(c->err, ERROR_INVALID, "it ends too early");
}

static int code_floats(struct codec *c, float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code_float(c, &values[i]) < 0)
            return -1;
    return 0;
}

/* --- text ------------------------------------------------------------------------------------ */
static int check_text(const char *text, size_t len, struct error *err)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return error_set(err, ERROR_INVALID, "a name or value holds byte %#x",
                             (unsigned char)text[i]);
    return 0;
}

static int code_text(struct codec *c, char **text, size_t max)
{
    size_t len = c->out && *text ? strlen(*text) : 0;
    if (code_size(c, &len, 0, max, "length of a name or value") < 0)
        return -1;
    if (c->out)
        return check_text(*text ? *text : "", len, c->err) < 0 ? -1 : code_bytes(c, *text, len);
    if (expect(c, len, 1) < 0)
        return -1;
    *text = xcalloc(len + 1, 1);
    return code_bytes(c, *text, len) < 0 ? -1 : check_text(*text, len, c->err);
}

/* How many items follow, each of which takes at least 4 bytes. */
static int code_count(struct codec *c, size_t *count, size_t max, const char *what)
{
    size_t number = *count;
    if (code_size(c, &number, 0, max, what) < 0 || expect(c, number, 4) < 0)
        return -1;
    *count = number;
    return 0;
}

static int code_names(struct codec *c, struct rl_names *names, const char *what)
{
    if (code_count(c, &names->count, RL_MAX_NAMES, what) < 0)
        return -1;
    if (c->out == NULL)
        names->items = xcalloc(names->count, sizeof(*names->items));
    for (size_t i = 0; i < names->count; i++)
        if (code_text(c, &names->items[i], RL_MAX_NAME) < 0)
            return -1;
    return 0;
}

/* --- parts ----------------------------------------------------------------------------------- */
static int code_interface(struct codec *c, struct rl_interface *i)
{
    if (code_names(c, &i->features, "number of features") < 0 ||
        code_names(c, &i->globals, "number of global features") < 0 ||
        code_names(c, &i->head_names, "number of actions") < 0)
        return -1;
    size_t heads = i->head_names.count, options[RL_MAX_HEADS];
    if (heads > RL_MAX_HEADS)
        return error_set(c->err, ERROR_INVALID, "number of actions: %zu, must be 0 to %d", heads,
                         RL_MAX_HEADS);
    memcpy(options, i->heads.options, sizeof(options));
    for (size_t h = 0; h < heads; h++)
        if (code_size(c, &options[h], 1, RL_MAX_OPTIONS, "options of an action") < 0)
            return -1;
    return heads == 0 ? 0 : rl_heads_init(&i->heads, options, heads, c->err);
}

static int code_shape(struct codec *c, struct rl_shape *s)
{
    size_t activation = s->activation;
    if (code_size(c, &activation, RL_TANH, RL_RELU, "activation") < 0 ||
        code_size(c, &s->inputs, 1, RL_MAX_WIDTH, "inputs") < 0 ||
        code_size(c, &s->outputs, 1, RL_MAX_WIDTH, "outputs") < 0 ||
        code_size(c, &s->hidden_count, 0, RL_MAX_HIDDEN, "hidden layers") < 0)
        return -1;
    s->activation = (enum rl_activation)activation;
    for (size_t i = 0; i < s->hidden_count; i++)
        if (code_size(c, &s->hidden[i], 1, RL_MAX_WIDTH, "width of a layer") < 0)
            return -1;
    return 0;
}

static int code_adam(struct codec *c, struct rl_adam *adam, size_t count)
{
    size_t is_saved = adam->count > 0;
    if (code_size(c, &is_saved, 0, 1, "mark of the optimiser") < 0)
        return -1;
    if (!is_saved)
        return 0;
    if (expect(c, count, 8) < 0)
        return -1;
    if (c->out == NULL)
        rl_adam_init(adam, count);
    if (code_u64(c, &adam->steps) < 0 || code_floats(c, adam->mean, count) < 0 ||
        code_floats(c, adam->square, count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (adam->square[i] < 0)
            return error_set(c->err, ERROR_INVALID, "a mean of squares is %g", adam->square[i]);
    return 0;
}

static int code_net(struct codec *c, struct rl_saved_net *saved)
{
    struct rl_shape shape = saved->net.shape;
    if (code_text(c, &saved->name, RL_MAX_NAME) < 0 || code_shape(c, &shape) < 0)
        return -1;
    size_t count = rl_shape_size(&shape);
    if (expect(c, count, 4) < 0)
        return -1;
    if (c->out == NULL && rl_net_make(&saved->net, &shape, c->err) < 0)
        return -1;
    if (code_floats(c, saved->net.params, count) < 0)
        return -1;
    return code_adam(c, &saved->adam, count);
}

/* The actions of a table are those of the interface. */
static int code_table(struct codec *c, struct rl_saved_table *saved, const struct rl_heads *heads)
{
    struct rl_grid grid = saved->table.grid;
    if (code_text(c, &saved->name, RL_MAX_NAME) < 0 ||
        code_size(c, &grid.feature_count, 1, RL_MAX_FEATURES, "features of a table") < 0)
        return -1;
    for (size_t i = 0; i < grid.feature_count; i++)
        if (code_size(c, &grid.bins[i], 1, UINT32_MAX, "bins") < 0 ||
            code_float(c, &grid.low[i]) < 0 || code_float(c, &grid.high[i]) < 0)
            return -1;
    size_t count = rl_table_size(&grid, heads);
    if (count == 0 || (c->out && count != saved->table.states * saved->table.actions))
        return error_set(c->err, ERROR_INVALID, "its bins and actions make no table");
    if (expect(c, count, 4) < 0)
        return -1;
    if (c->out == NULL && rl_table_make(&saved->table, &grid, heads, c->err) < 0)
        return -1;
    return code_floats(c, saved->table.values, count);
}

static int code_nets(struct codec *c, struct rl_checkpoint *p)
{
    if (code_count(c, &p->net_count, RL_MAX_SAVED, "number of networks") < 0)
        return -1;
    if (c->out == NULL)
        p->nets = xcalloc(p->net_count, sizeof(*p->nets));
    for (size_t i = 0; i < p->net_count; i++)
        if (code_net(c, &p->nets[i]) < 0)
            return error_prefix(c->err, "network %zu", i + 1);
    return 0;
}

static int code_tables(struct codec *c, struct rl_checkpoint *p)
{
    if (code_count(c, &p->table_count, RL_MAX_SAVED, "number of tables") < 0)
        return -1;
    if (c->out == NULL)
        p->tables = xcalloc(p->table_count, sizeof(*p->tables));
    for (size_t i = 0; i < p->table_count; i++)
        if (code_table(c, &p->tables[i], &p->interface.heads) < 0)
            return error_prefix(c->err, "table %zu", i + 1);
    return 0;
}

static int code_facts(struct codec *c, struct rl_checkpoint *p)
{
    if (code_count(c, &p->fact_count, RL_MAX_SAVED, "number of facts") < 0)
        return -1;
    if (c->out == NULL)
        p->facts = xcalloc(p->fact_count, sizeof(*p->facts));
    for (size_t i = 0; i < p->fact_count; i++)
        if (code_text(c, &p->facts[i].key, RL_MAX_NAME) < 0 ||
            code_text(c, &p->facts[i].value, RL_MAX_VALUE) < 0)
            return error_prefix(c->err, "fact %zu", i + 1);
    return 0;
}

static int code_content(struct codec *c, struct rl_checkpoint *p)
{
    if (code_text(c, &p->algorithm, RL_MAX_NAME) < 0 || code_u64(c, &p->steps) < 0 ||
        code_u64(c, &p->episodes) < 0 || code_u64(c, &p->updates) < 0 ||
        code_interface(c, &p->interface) < 0 || code_facts(c, p) < 0 || code_nets(c, p) < 0)
        return -1;
    return code_tables(c, p);
}

/* --- the whole ------------------------------------------------------------------------------- */
static void find_hash(const void *data, size_t len, uint8_t hash[HASH_SIZE])
{
    if (EVP_Digest(data, len, hash, NULL, EVP_sha256(), NULL) != 1)
        out_of_memory();
}

char *rl_checkpoint_encode(const struct rl_checkpoint *p, size_t *len, struct error *err)
{
    cleanup_buf struct buf content, all;
    struct rl_checkpoint same = *p; /* writing changes nothing */
    uint8_t hash[HASH_SIZE];
    buf_init(&content, RL_CHECKPOINT_MAX_BYTES - HEADER_SIZE);
    buf_init(&all, RL_CHECKPOINT_MAX_BYTES);
    if (code_content(&(struct codec){.out = &content, .err = err}, &same) < 0)
        return NULL;
    find_hash(content.data, content.len, hash);
    struct codec c = {.out = &all, .err = err};
    if (buf_append(&all, magic, sizeof(magic)) < 0 ||
        write_number(&c, RL_CHECKPOINT_VERSION, 4) < 0 || write_number(&c, content.len, 8) < 0 ||
        code_bytes(&c, hash, HASH_SIZE) < 0 || code_bytes(&c, content.data, content.len) < 0)
        return NULL;
    *len = all.len;
    return buf_take(&all);
}

/* Leaves the content in c. */
static int read_header(struct codec *c, uint8_t hash[HASH_SIZE])
{
    char begin[sizeof(magic)] = {0};
    uint8_t saved[HASH_SIZE];
    uint64_t version = 0, size = 0;
    size_t len = c->left;
    if (code_bytes(c, begin, sizeof(begin)) < 0 || memcmp(begin, magic, sizeof(magic)) != 0)
        return error_set(c->err, ERROR_INVALID, "this is no checkpoint");
    if (read_number(c, &version, 4) < 0)
        return -1;
    if (version != RL_CHECKPOINT_VERSION)
        return error_set(c->err, ERROR_INVALID,
                         "it has version %llu of the format, this program reads version %d",
                         (unsigned long long)version, RL_CHECKPOINT_VERSION);
    if (read_number(c, &size, 8) < 0 || code_bytes(c, saved, HASH_SIZE) < 0)
        return -1;
    if (size > RL_CHECKPOINT_MAX_BYTES)
        return error_set(c->err, ERROR_TOO_LARGE,
                         "it claims to have %llu bytes, at most %zu are read",
                         (unsigned long long)size, RL_CHECKPOINT_MAX_BYTES);
    if (size != c->left)
        return error_set(c->err, ERROR_INVALID, "it has %zu bytes instead of %llu: it was %s", len,
                         (unsigned long long)size + HEADER_SIZE,
                         size > c->left ? "cut off" : "added to");
    find_hash(c->in, c->left, hash);
    if (memcmp(hash, saved, HASH_SIZE) != 0)
        return error_set(c->err, ERROR_INVALID,
                         "it is damaged: its content does not match its SHA-256");
    return 0;
}

int rl_checkpoint_decode(struct rl_checkpoint *p, const void *data, size_t len, struct error *err)
{
    struct codec c = {.in = data, .left = len, .err = err};
    uint8_t hash[HASH_SIZE] = {0};
    *p = (struct rl_checkpoint){0};
    if (len > RL_CHECKPOINT_MAX_BYTES)
        return error_set(err, ERROR_TOO_LARGE, "a checkpoint can have at most %zu bytes",
                         RL_CHECKPOINT_MAX_BYTES);
    if (read_header(&c, hash) < 0)
        return -1;
    for (size_t i = 0; i < HASH_SIZE; i++)
        snprintf(p->sha256 + 2 * i, 3, "%02x", hash[i]);
    int result = code_content(&c, p);
    if (result == 0 && c.left > 0)
        result = error_set(err, ERROR_INVALID, "%zu bytes follow its content", c.left);
    if (result < 0)
        rl_checkpoint_clear(p);
    return result;
}

int rl_checkpoint_copy(const struct rl_checkpoint *from, struct rl_checkpoint *to,
                       struct error *err)
{
    size_t len;
    cleanup_free char *bytes = rl_checkpoint_encode(from, &len, err);
    return bytes ? rl_checkpoint_decode(to, bytes, len, err) : -1;
}

int rl_checkpoint_write(const struct rl_checkpoint *p, const char *path, struct error *err)
{
    size_t len;
    cleanup_free char *data = rl_checkpoint_encode(p, &len, err);
    if (data == NULL)
        return error_prefix(err, "%s", path);
    return file_write(path, data, len, err);
}

int rl_checkpoint_read(struct rl_checkpoint *p, const char *path, struct error *err)
{
    size_t len;
    *p = (struct rl_checkpoint){0};
    cleanup_free char *data = file_read(path, RL_CHECKPOINT_MAX_BYTES, &len, err);
    if (data == NULL)
        return -1;
    return rl_checkpoint_decode(p, data, len, err) < 0 ? error_prefix(err, "%s", path) : 0;
}
