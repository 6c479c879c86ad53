#include "rl/checkpoint.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rl_worlds.h"

#include <openssl/evp.h>

enum { HEADER = 52 }; /* magic 8, version 4, length 8, SHA-256 32 */

static void fill(struct rl_checkpoint *c)
{
    struct random random = random_stream(1, 1);
    struct rl_net net;
    struct rl_adam adam;
    *c = (struct rl_checkpoint){
        .algorithm = xstrdup("ppo"), .steps = 1u << 20, .episodes = 77, .updates = 5};
    rl_names_add(&c->interface.features, "slo_preservation");
    rl_names_add(&c->interface.features, "cpu_utilization");
    rl_names_add(&c->interface.globals, "mean_slo_preservation");
    rl_interface_add_head(&c->interface, "replicas", 3);
    rl_interface_add_head(&c->interface, "cpu", 5);
    rl_checkpoint_set(c, "env", "default");
    rl_checkpoint_set(c, "note", "first");
    rl_checkpoint_set(c, "note", "größer ist besser");
    assert_int_equal(rl_net_make(&net, &(struct rl_shape){2, 8, {4, 3}, 2, RL_RELU}, NULL), 0);
    rl_net_randomise(&net, 1, &random);
    rl_adam_init(&adam, net.param_count);
    adam.steps = 12345678901u;
    adam.mean[3] = -0.5f;
    adam.square[4] = 0.25f;
    rl_checkpoint_add_net(c, "actor", &net, &adam);
    rl_checkpoint_add_net(c, "critic", &net, NULL);
    rl_net_clear(&net);
    rl_adam_clear(&adam);
}

static void add_table(struct rl_checkpoint *c)
{
    struct rl_grid grid;
    struct rl_table table;
    rl_grid_init(&grid, 2, 3, -1, 1);
    assert_int_equal(rl_table_make(&table, &grid, &c->interface.heads, NULL), 0);
    table.values[7] = 3.5f;
    rl_checkpoint_add_table(c, "q", &table);
    rl_table_clear(&table);
}

static char *encode(size_t *len)
{
    struct rl_checkpoint c;
    fill(&c);
    add_table(&c);
    char *data = rl_checkpoint_encode(&c, len, NULL);
    assert_non_null(data);
    rl_checkpoint_clear(&c);
    return data;
}

/* --- round trip --- */
static void check_nets(const struct rl_checkpoint *c, const struct rl_checkpoint *like)
{
    for (size_t i = 0; i < like->net_count; i++) {
        const struct rl_saved_net *a = &like->nets[i], *b = rl_checkpoint_net(c, a->name);
        assert_non_null(b);
        assert_int_equal(rl_shape_check(&a->net.shape, &b->net.shape, NULL), 0);
        assert_int_equal(a->net.param_count, b->net.param_count);
        assert_memory_equal(a->net.params, b->net.params, a->net.param_count * sizeof(float));
        assert_int_equal(a->adam.count, b->adam.count);
        assert_int_equal(a->adam.steps, b->adam.steps);
        if (a->adam.count > 0) {
            assert_memory_equal(a->adam.mean, b->adam.mean, a->adam.count * sizeof(float));
            assert_memory_equal(a->adam.square, b->adam.square, a->adam.count * sizeof(float));
        }
    }
}

static void test_what_was_saved_comes_back(void **state)
{
    struct rl_checkpoint like, c;
    struct error err = {0};
    size_t len;
    cleanup_free char *data = encode(&len);
    (void)state;
    fill(&like);
    assert_int_equal(rl_checkpoint_decode(&c, data, len, &err), 0);
    assert_string_equal(c.algorithm, "ppo");
    assert_int_equal(c.steps, 1u << 20);
    assert_int_equal(c.episodes, 77);
    assert_int_equal(c.updates, 5);
    assert_int_equal(rl_interface_check(&c.interface, &like.interface, &err), 0);
    assert_int_equal(c.interface.heads.total, 8);
    assert_string_equal(rl_checkpoint_get(&c, "note"), "größer ist besser");
    assert_null(rl_checkpoint_get(&c, "nothing"));
    assert_null(rl_checkpoint_net(&c, "nothing"));
    check_nets(&c, &like);
    const struct rl_saved_table *q = rl_checkpoint_table(&c, "q");
    assert_int_equal(q->table.states, 9);
    assert_int_equal(q->table.actions, 15);
    assert_float_equal(q->table.values[7], 3.5, 0);
    rl_checkpoint_clear(&c);
    rl_checkpoint_clear(&like);
}

/* The bytes are those that the document describes, whatever machine writes them. */
static void test_bytes_are_as_described(void **state)
{
    static const uint8_t content[] = {
        1,    0,    0,    0,    'x',                    /* algorithm */
        0x04, 0x03, 0x02, 1,    0,   0,   0, 0,         /* steps */
        2,    0,    0,    0,    0,   0,   0, 0,         /* episodes */
        3,    0,    0,    0,    0,   0,   0, 0,         /* updates */
        1,    0,    0,    0,    1,   0,   0, 0,    'f', /* features */
        0,    0,    0,    0,                            /* globals */
        0,    0,    0,    0,                            /* actions */
        1,    0,    0,    0,    1,   0,   0, 0,    'k', /* facts */
        2,    0,    0,    0,    'v', 'w',               /* */
        1,    0,    0,    0,    1,   0,   0, 0,    'n', /* networks */
        1,    0,    0,    0,    1,   0,   0, 0,         /* ReLU, inputs */
        1,    0,    0,    0,    0,   0,   0, 0,         /* outputs, hidden layers */
        0,    0,    0x80, 0x3f, 0,   0,   0, 0xc0,      /* 1.0, -2.0 */
        0,    0,    0,    0,                            /* without Adam's memory */
        0,    0,    0,    0,                            /* tables */
    };
    struct rl_checkpoint c = {
        .algorithm = xstrdup("x"), .steps = 0x01020304, .episodes = 2, .updates = 3};
    struct rl_net net;
    uint8_t hash[32];
    size_t len;
    (void)state;
    rl_names_add(&c.interface.features, "f");
    rl_checkpoint_set(&c, "k", "vw");
    assert_int_equal(rl_net_make(&net, &(struct rl_shape){1, 1, {0}, 0, RL_RELU}, NULL), 0);
    net.params[0] = 1;
    net.params[1] = -2;
    rl_checkpoint_add_net(&c, "n", &net, NULL);
    cleanup_free char *data = rl_checkpoint_encode(&c, &len, NULL);
    assert_int_equal(len, HEADER + sizeof(content));
    assert_memory_equal(data, "FAASRLCP\1\0\0\0", 12);
    assert_int_equal((uint8_t)data[12], sizeof(content));
    assert_memory_equal(data + HEADER, content, sizeof(content));
    assert_int_equal(EVP_Digest(content, sizeof(content), hash, NULL, EVP_sha256(), NULL), 1);
    assert_memory_equal(data + 20, hash, 32);
    rl_net_clear(&net);
    rl_checkpoint_clear(&c);
}

/* --- refusals --- */
static void expect_refusal(const char *data, size_t len, const char *reason)
{
    struct rl_checkpoint c;
    struct error err = {0};
    assert_int_equal(rl_checkpoint_decode(&c, data, len, &err), -1);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
    assert_null(c.nets);
}

/* As somebody who writes files of his own would. */
static void seal(char *data, size_t len)
{
    for (int i = 0; i < 8; i++)
        data[12 + i] = (char)((len - HEADER) >> (8 * i));
    EVP_Digest(data + HEADER, len - HEADER, (uint8_t *)data + 20, NULL, EVP_sha256(), NULL);
}

static void test_what_is_no_checkpoint_is_refused(void **state)
{
    size_t len;
    cleanup_free char *data = encode(&len);
    (void)state;
    expect_refusal("", 0, "this is no checkpoint");
    expect_refusal("apiVersion: v1", 14, "this is no checkpoint");
    data[8] = 2;
    expect_refusal(data, len, "it has version 2 of the format, this program reads version 1");
    data[8] = 1;
    data[len - 5] ^= 1;
    expect_refusal(data, len, "does not match its SHA-256");
    data[len - 5] ^= 1;
    data[30] ^= 1;
    expect_refusal(data, len, "does not match its SHA-256");
    data[30] ^= 1;
    data[18] = 1;
    expect_refusal(data, len, "it claims to have ");
}

static void test_any_cut_is_refused(void **state)
{
    size_t len;
    cleanup_free char *data = encode(&len);
    (void)state;
    expect_refusal(data, len - 1, "it was cut off");
    for (size_t n = 0; n < len; n++) {
        cleanup_free char *piece = xcalloc(n, 1); /* so that reading beyond it is noticed */
        memcpy(piece, data, n);
        expect_refusal(piece, n,
                       n < 8        ? "no checkpoint"
                       : n < HEADER ? "ends too early"
                                    : "cut off");
        if (n < HEADER)
            continue;
        seal(piece, n);
        expect_refusal(piece, n, "");
    }
    cleanup_free char *longer = xcalloc(len + 1, 1);
    memcpy(longer, data, len);
    expect_refusal(longer, len + 1, "it was added to");
    seal(longer, len + 1);
    expect_refusal(longer, len + 1, "1 bytes follow its content");
}

static void test_absurd_content_is_refused(void **state)
{
    size_t len;
    cleanup_free char *data = encode(&len);
    const struct {
        const char *behind; /* what stands before the number that is changed, */
        size_t known;       /* its length, */
        size_t offset;      /* and what lies between */
        uint32_t value;
        const char *reason;
    } cases[] = {
        {"FAASRLCP", 8, HEADER - 8, 64, "length of a name or value: 64, must be 0 to 63"},
        {"ppo", 3, 24, 5000, "number of features: 5000, must be 0 to 4096"},
        {"ppo", 3, 24, 4096, "it ends too early"},
        {"ppo", 3, 32, 0x0a0a0a0a, "a name or value holds byte 0xa"},
        {"slo_preservation", 16, 0, 0x7fffffff, "length of a name or value"},
        {"\3\0\0\0cpu", 7, 0, 0, "options of an action: 0, must be 1 to 256"},
        {"\3\0\0\0cpu", 7, 4, 254, "part 1 of an action has 254 options"},
        {"actor", 5, 0, 2, "network 1: activation: 2, must be 0 to 1"},
        {"actor", 5, 4, 0, "network 1: inputs: 0, must be 1 to 4096"},
        {"actor", 5, 12, 9, "network 1: hidden layers: 9, must be 0 to 8"},
        {"actor", 5, 16, 4096, "network 1: it ends too early"},
        {"actor", 5, 24, 0x7fc00000, "network 1: one of its weights is nan"},
        {"actor", 5, 24, 0xff800000, "network 1: one of its weights is -inf"},
        {"\1\0\0\0q", 5, 0, 33, "table 1: features of a table: 33, must be 1 to 32"},
        {"\1\0\0\0q", 5, 4, 0x7fffffff, "table 1: its bins and actions make no table"},
        {"\1\0\0\0q", 5, 8, 0x3f800000, "table 1: its bins and actions make no table"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *changed = xcalloc(len, 1);
        memcpy(changed, data, len);
        char *at = memmem(changed, len, cases[i].behind, cases[i].known);
        assert_non_null(at);
        at += cases[i].known + cases[i].offset;
        for (int k = 0; k < 4; k++)
            at[k] = (char)(cases[i].value >> (8 * k));
        seal(changed, len);
        expect_refusal(changed, len, cases[i].reason);
    }
}

static void test_what_is_too_large_is_not_written(void **state)
{
    struct rl_checkpoint c;
    struct error err = {0};
    size_t len;
    char name[RL_MAX_NAME + 2];
    (void)state;
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    fill(&c);
    rl_names_add(&c.interface.features, name);
    assert_null(rl_checkpoint_encode(&c, &len, &err));
    assert_string_equal(err.message, "length of a name or value: 64, must be 0 to 63");
    rl_checkpoint_clear(&c);
    fill(&c);
    rl_checkpoint_set(&c, "bell", "\a");
    assert_null(rl_checkpoint_encode(&c, &len, &err));
    rl_checkpoint_clear(&c);
    fill(&c);
    c.nets[1].net.params[2] = NAN;
    assert_null(rl_checkpoint_encode(&c, &len, &err));
    assert_string_equal(err.message, "network 2: one of its weights is nan");
    rl_checkpoint_clear(&c);
    fill(&c);
    for (int i = 0; i < RL_MAX_HEADS; i++)
        rl_interface_add_head(&c.interface, "more", 2);
    assert_null(rl_checkpoint_encode(&c, &len, &err));
    rl_checkpoint_clear(&c);
}

/* --- what does not fit --- */
static void test_first_difference_is_named(void **state)
{
    struct rl_checkpoint c, other;
    struct error err = {0};
    (void)state;
    fill(&c);
    fill(&other);
    assert_int_equal(rl_interface_check(&c.interface, &other.interface, &err), 0);
    rl_names_add(&other.interface.features, "queue");
    assert_int_equal(rl_interface_check(&c.interface, &other.interface, &err), -1);
    assert_string_equal(err.message, "it has 2 features, the first that it lacks is queue");
    assert_int_equal(rl_interface_check(&other.interface, &c.interface, &err), -1);
    assert_string_equal(err.message, "it has 3 features, the first too many is queue");
    rl_names_add(&c.interface.features, "rate");
    assert_int_equal(rl_interface_check(&c.interface, &other.interface, &err), -1);
    assert_string_equal(err.message, "feature 3 is rate there, and should be queue");
    string_set(&c.interface.features.items[2], "queue");
    c.interface.heads.options[1] = 4;
    assert_int_equal(rl_interface_check(&c.interface, &other.interface, &err), -1);
    assert_string_equal(err.message, "action cpu has 4 options there, and should have 5");
    rl_checkpoint_clear(&c);
    rl_checkpoint_clear(&other);
}

/* --- learners --- */
static void learn(struct rl_ppo *ppo, struct carts *c)
{
    struct rl_ppo_report report;
    while (!rl_ppo_is_full(ppo)) {
        rl_ppo_act(ppo);
        carts_step(c);
        rl_ppo_see(ppo);
    }
    assert_int_equal(rl_ppo_update(ppo, &report, NULL), 0);
}

static void test_ppo_goes_on_from_a_checkpoint(void **state)
{
    struct carts c;
    struct rl_checkpoint saved = {.algorithm = xstrdup("ppo")};
    struct rl_ppo_config config = rl_ppo_default;
    struct error err = {0};
    (void)state;
    config.horizon = 8;
    carts_init(&c, 4, 1);
    struct rl_ppo *one = rl_ppo_new(&config, &c.world, rl_all_rows, 9, 1, NULL);
    struct rl_ppo *two = rl_ppo_new(&config, &c.world, rl_all_rows, 9, 2, NULL);
    config.hidden[1] = 32;
    struct rl_ppo *three = rl_ppo_new(&config, &c.world, rl_all_rows, 9, 2, NULL);
    learn(one, &c);
    rl_ppo_save(one, "3", &saved);
    assert_int_equal(saved.updates, 1);
    assert_int_equal(rl_ppo_load(two, "", &saved, &err), -1);
    assert_string_equal(err.message, "there is no network actor in the checkpoint");
    assert_int_equal(rl_ppo_load(three, "3", &saved, &err), -1);
    assert_string_equal(err.message,
                        "network actor/3: its hidden layer 2 is 64 wide, and should be 32");
    assert_int_equal(rl_ppo_load(two, "3", &saved, &err), 0);
    size_t size = rl_ppo_actor(one)->param_count * sizeof(float);
    assert_memory_equal(rl_ppo_actor(one)->params, rl_ppo_actor(two)->params, size);
    rl_checkpoint_clear(&saved);
    rl_ppo_save(two, "3", &saved); /* and so is Adam's memory */
    assert_true(saved.nets[0].adam.steps > 0);
    rl_checkpoint_clear(&saved);
    rl_ppo_free(one);
    rl_ppo_free(two);
    rl_ppo_free(three);
}

static void test_q_goes_on_from_a_checkpoint(void **state)
{
    struct walks w;
    struct rl_checkpoint saved = {.algorithm = xstrdup("qlearning")}, again;
    struct rl_grid grid;
    struct error err = {0};
    size_t len;
    (void)state;
    walks_init(&w, 1);
    rl_grid_init(&grid, 1, PLACES, -0.5f, PLACES - 0.5f);
    rl_interface_add_head(&saved.interface, "direction", 2);
    struct rl_q *one = rl_q_new(&rl_q_default, &grid, &w.world, rl_all_rows, 1, NULL);
    struct rl_q *two = rl_q_new(&rl_q_default, &grid, &w.world, rl_all_rows, 2, NULL);
    grid.bins[0] = 3;
    struct rl_q *three = rl_q_new(&rl_q_default, &grid, &w.world, rl_all_rows, 2, NULL);
    rl_q_table(one)->values[3] = 0.5f;
    rl_q_save(one, "", &saved);
    cleanup_free char *data = rl_checkpoint_encode(&saved, &len, NULL);
    assert_int_equal(rl_checkpoint_decode(&again, data, len, NULL), 0);
    assert_int_equal(rl_q_load(two, "", &again, &err), 0);
    assert_float_equal(rl_q_table(two)->values[3], 0.5, 0);
    assert_int_equal(rl_q_load(three, "", &again, &err), -1);
    assert_string_equal(err.message, "table q has other bins or actions");
    assert_int_equal(rl_q_load(three, "x", &again, &err), -1);
    rl_checkpoint_clear(&saved);
    rl_checkpoint_clear(&again);
    rl_q_free(one);
    rl_q_free(two);
    rl_q_free(three);
}

/* --- files --- */
static void test_file_is_replaced_as_a_whole(void **state)
{
    char directory[] = "/tmp/checkpoint_test.XXXXXX";
    struct rl_checkpoint c, back;
    struct error err = {0};
    struct stat info;
    (void)state;
    assert_non_null(mkdtemp(directory));
    cleanup_free char *path = xasprintf("%s/policy.ckpt", directory);
    fill(&c);
    assert_int_equal(rl_checkpoint_write(&c, path, &err), 0);
    c.steps = 2;
    assert_int_equal(rl_checkpoint_write(&c, path, &err), 0);
    assert_int_equal(rl_checkpoint_read(&back, path, &err), 0);
    assert_int_equal(back.steps, 2);
    rl_checkpoint_clear(&back);
    /* What cannot be written leaves the file as it was, and nothing beside it. */
    rl_checkpoint_set(&c, "bell", "\a");
    assert_int_equal(rl_checkpoint_write(&c, path, &err), -1);
    cleanup_free char *beside = xasprintf("%s.%ld.tmp", path, (long)getpid());
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(file_write(path, "x", 1, &err), -1);
    assert_int_equal(rmdir(beside), 0);
    assert_int_equal(rl_checkpoint_read(&back, path, &err), 0);
    rl_checkpoint_clear(&back);
    rl_checkpoint_clear(&c);
    /* A directory cannot be replaced by a file. */
    assert_int_equal(file_write(directory, "x", 1, &err), -1);
    assert_int_equal(unlink(path), 0);
    cleanup_free char *left = xasprintf("%s.%ld.tmp", directory, (long)getpid());
    assert_int_equal(stat(left, &info), -1);
    assert_int_equal(rmdir(directory), 0);
}

/* A disk that is full in the middle of a file. */
static void test_half_written_file_leaves_the_old_one(void **state)
{
    static const char large[8192];
    char directory[] = "/tmp/checkpoint_test.XXXXXX";
    struct error err = {0};
    struct rlimit before, small;
    size_t len;
    (void)state;
    assert_non_null(mkdtemp(directory));
    cleanup_free char *path = xasprintf("%s/file", directory);
    assert_int_equal(file_write(path, "old", 3, &err), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = file_write(path, large, sizeof(large), &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(result, -1);
    assert_non_null(strstr(err.message, "File too large"));
    cleanup_free char *content = file_read(path, 100, &len, &err);
    assert_string_equal(content, "old");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0); /* nothing else is left in it */
}

static void test_file_that_cannot_be_read_is_named(void **state)
{
    struct rl_checkpoint c;
    struct error err = {0};
    (void)state;
    assert_int_equal(rl_checkpoint_read(&c, "/nowhere/policy.ckpt", &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_int_equal(rl_checkpoint_read(&c, "/dev/null", &err), -1);
    assert_string_equal(err.message, "/dev/null: this is no checkpoint");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_saved_comes_back),
        cmocka_unit_test(test_bytes_are_as_described),
        cmocka_unit_test(test_what_is_no_checkpoint_is_refused),
        cmocka_unit_test(test_any_cut_is_refused),
        cmocka_unit_test(test_absurd_content_is_refused),
        cmocka_unit_test(test_what_is_too_large_is_not_written),
        cmocka_unit_test(test_first_difference_is_named),
        cmocka_unit_test(test_ppo_goes_on_from_a_checkpoint),
        cmocka_unit_test(test_q_goes_on_from_a_checkpoint),
        cmocka_unit_test(test_file_is_replaced_as_a_whole),
        cmocka_unit_test(test_half_written_file_leaves_the_old_one),
        cmocka_unit_test(test_file_that_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
