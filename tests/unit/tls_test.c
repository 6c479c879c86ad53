/* Whom pkg/http trusts over TLS. The authorities that libcurl takes for the system's are the test's
 * here, and the machine's own settings of OpenSSL are out of the way, so that a refusal is ours. */
#include "http/http.h"
#include "tls_server.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <unistd.h>

#define DAY_S 86400L
#define NAMES "IP:127.0.0.1,DNS:api.test"

struct world {
    struct pair authority, other, good; /* good: the authority's, for 127.0.0.1 and api.test */
    char *ca_pem, *other_pem;
};

struct outcome {
    int calls, status;
    char version[16]; /* of TLS; "": no request arrived */
    struct error error;
};

/* --- the system's authorities ---------------------------------------------------------------- */
static char *system_file, *system_dir; /* NULL: none */

/* What libcurl is compiled with stands in a new handle as if it had been set: so it is set. */
CURL *curl_easy_init(void)
{
    CURL *(*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "curl_easy_init");
    CURL *easy = real();
    curl_easy_setopt(easy, CURLOPT_CAINFO, system_file);
    curl_easy_setopt(easy, CURLOPT_CAPATH, system_dir);
    return easy;
}

static void write_pem(const char *path, const char *pem)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(pem, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void trust_by_file(const struct world *w)
{
    system_file = xstrdup("/tmp/tls_test.XXXXXX");
    close(mkstemp(system_file));
    write_pem(system_file, w->ca_pem);
}

/* OpenSSL finds an authority in a directory by the hash of its name. */
static void trust_by_directory(const struct world *w)
{
    system_dir = xstrdup("/tmp/tls_test.XXXXXX");
    assert_non_null(mkdtemp(system_dir));
    cleanup_free char *path =
        xasprintf("%s/%08lx.0", system_dir, X509_subject_name_hash(w->authority.cert));
    write_pem(path, w->ca_pem);
}

static void trust_nobody(const struct world *w)
{
    if (system_file)
        unlink(system_file);
    if (system_dir) {
        cleanup_free char *path =
            xasprintf("%s/%08lx.0", system_dir, X509_subject_name_hash(w->authority.cert));
        unlink(path);
        rmdir(system_dir);
    }
    string_set(&system_file, NULL);
    string_set(&system_dir, NULL);
}

/* --- the world of one test ------------------------------------------------------------------- */
static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->authority = pair_new("authority", NULL, NULL, DAY_S);
    w->other = pair_new("another authority", NULL, NULL, DAY_S);
    w->good = pair_new("good", NAMES, &w->authority, DAY_S);
    w->ca_pem = pair_cert_pem(&w->authority);
    w->other_pem = pair_cert_pem(&w->other);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    trust_nobody(w);
    pair_free(&w->authority);
    pair_free(&w->other);
    pair_free(&w->good);
    free(w->ca_pem);
    free(w->other_pem);
    free(w);
    return 0;
}

static void on_done(void *arg, const struct http_response *response)
{
    struct outcome *out = arg;
    out->calls++;
    out->status = response->status;
    out->error = response->error;
}

/* One request, to a server of its own, so that no connection of another one is used again. */
static struct outcome ask(const struct pair *pair, int newest, const struct http_tls *tls)
{
    struct tls_server server = {0};
    struct outcome out = {0};
    struct error err;
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct http *http = http_new(&loop, "test");
    tls_server_start(&server, &loop, pair, newest);
    cleanup_free char *url = xasprintf("https://127.0.0.1:%d/x", server.port);
    struct http_request request = {
        .url = url, .tls = tls, .timeout_ms = 60000, .on_done = on_done, .arg = &out};
    assert_non_null(http_send(http, &request, &err));
    while (out.calls == 0)
        uv_run(&loop, UV_RUN_ONCE);
    http_free(http);
    tls_server_stop(&server);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(out.calls, 1);
    memcpy(out.version, server.version, sizeof(out.version));
    return out;
}

static void assert_accepted(const struct outcome *out, const char *version)
{
    if (out->error.code != ERROR_NONE)
        fail_msg("refused: %s", out->error.message);
    assert_int_equal(out->status, 200);
    assert_string_equal(out->version, version);
}

/* Nothing of the request was sent, and the reason names the host. */
static void assert_refused(const struct outcome *out, const char *host, const char *reason)
{
    cleanup_free char *begin = xasprintf("no TLS with %s:", host);
    assert_int_equal(out->status, 0);
    assert_string_equal(out->version, "");
    assert_int_equal(out->error.code, ERROR_UNAVAILABLE);
    if (strncmp(out->error.message, begin, strlen(begin)) != 0 ||
        !strstr(out->error.message, reason))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", out->error.message, begin, reason);
}

/* --- versions -------------------------------------------------------------------------------- */
/* A client without any rule of its own meets the server in memory. */
static int greet(const struct pair *pair, int newest)
{
    BIO *ends[2];
    SSL_CTX *client_context = SSL_CTX_new(TLS_client_method());
    SSL_CTX *server_context = tls_context(pair, newest);
    SSL *client = SSL_new(client_context), *server = SSL_new(server_context);
    assert_int_equal(BIO_new_bio_pair(&ends[0], 0, &ends[1], 0), 1);
    SSL_set_bio(client, ends[0], ends[0]);
    SSL_set_bio(server, ends[1], ends[1]);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(client);
        SSL_do_handshake(server);
    }
    bool met = SSL_is_init_finished(client) && SSL_is_init_finished(server);
    int version = met ? SSL_version(client) : 0;
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(client_context);
    SSL_CTX_free(server_context);
    return version;
}

static void test_versions(void **state)
{
    struct world *w = *state;
    const struct http_tls tls = {.ca_pem = w->ca_pem};
    struct outcome out = ask(&w->good, TLS1_3_VERSION, &tls);
    assert_accepted(&out, "TLSv1.3");
    out = ask(&w->good, TLS1_2_VERSION, &tls);
    assert_accepted(&out, "TLSv1.2");
}

static void test_old_versions_are_refused(void **state)
{
    struct world *w = *state;
    static const int old[] = {TLS1_1_VERSION, TLS1_VERSION};
    const struct http_tls tls = {.ca_pem = w->ca_pem}, blind = {.insecure = true};
    for (size_t i = 0; i < ARRAY_LEN(old); i++) {
        assert_int_equal(greet(&w->good, old[i]), old[i]);
        struct outcome out = ask(&w->good, old[i], &tls);
        assert_refused(&out, "127.0.0.1", "protocol");
        out = ask(&w->good, old[i], &blind);
        assert_refused(&out, "127.0.0.1", "protocol");
    }
}

/* --- certificates ---------------------------------------------------------------------------- */
static void test_name(void **state)
{
    struct world *w = *state;
    struct pair named = pair_new("127.0.0.1", "DNS:api.test", &w->authority, DAY_S);
    struct http_tls tls = {.ca_pem = w->ca_pem};
    struct outcome out = ask(&named, TLS1_3_VERSION, &tls);
    assert_refused(&out, "127.0.0.1", "target host name '127.0.0.1'");
    tls.server_name = (char *)(uintptr_t) "api.test";
    out = ask(&named, TLS1_3_VERSION, &tls);
    assert_accepted(&out, "TLSv1.3");
    tls.server_name = (char *)(uintptr_t) "other.test";
    out = ask(&named, TLS1_3_VERSION, &tls);
    assert_refused(&out, "other.test", "target host name 'other.test'");
    pair_free(&named);
}

static void test_expired(void **state)
{
    struct world *w = *state;
    struct pair expired = pair_new("expired", NAMES, &w->authority, -DAY_S);
    const struct http_tls tls = {.ca_pem = w->ca_pem};
    struct outcome out = ask(&expired, TLS1_3_VERSION, &tls);
    assert_refused(&out, "127.0.0.1", "certificate has expired");
    pair_free(&expired);
}

static void test_unknown_authority(void **state)
{
    struct world *w = *state;
    struct pair alone = pair_new("alone", NAMES, NULL, DAY_S);
    const struct http_tls tls = {.ca_pem = w->other_pem};
    struct outcome out = ask(&w->good, TLS1_3_VERSION, &tls);
    assert_refused(&out, "127.0.0.1", "unable to get local issuer certificate");
    out = ask(&w->good, TLS1_3_VERSION, NULL);
    assert_refused(&out, "127.0.0.1", "unable to get local issuer certificate");
    out = ask(&alone, TLS1_3_VERSION, &tls);
    assert_refused(&out, "127.0.0.1", "self-signed certificate");
    pair_free(&alone);
}

/* A certificate for a server that is signed by another server's is nobody's. */
static void test_a_server_is_no_authority(void **state)
{
    struct world *w = *state;
    struct pair forged = pair_new("forged", NAMES, &w->good, DAY_S);
    cleanup_free char *good_pem = pair_cert_pem(&w->good);
    cleanup_free char *both = xasprintf("%s%s", w->ca_pem, good_pem);
    const struct http_tls tls = {.ca_pem = both};
    struct outcome out = ask(&forged, TLS1_3_VERSION, &tls);
    assert_refused(&out, "127.0.0.1", "invalid CA certificate");
    pair_free(&forged);
}

/* --- whose authorities ----------------------------------------------------------------------- */
static void test_authorities_of_the_system(void **state)
{
    struct world *w = *state;
    const struct http_tls own = {.ca_pem = w->other_pem}, none = {0};
    void (*const ways[])(const struct world *) = {trust_by_file, trust_by_directory};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        ways[i](w);
        struct outcome out = ask(&w->good, TLS1_3_VERSION, NULL);
        assert_accepted(&out, "TLSv1.3");
        out = ask(&w->good, TLS1_3_VERSION, &none);
        assert_accepted(&out, "TLSv1.3");
        out = ask(&w->good, TLS1_3_VERSION, &own);
        assert_refused(&out, "127.0.0.1", "unable to get local issuer certificate");
        trust_nobody(w);
    }
}

static void test_unverified_where_asked_for(void **state)
{
    (void)state;
    struct pair wrong = pair_new("wrong", "DNS:other.test", NULL, -DAY_S);
    const struct http_tls blind = {.insecure = true};
    struct outcome out = ask(&wrong, TLS1_3_VERSION, &blind);
    assert_accepted(&out, "TLSv1.3");
    pair_free(&wrong);
}

/* --- the program ----------------------------------------------------------------------------- */
/* OpenSSL reads its settings when it is first used. These allow everything. */
static void allow_everything(void)
{
    static const char settings[] = "openssl_conf = top\n[top]\nssl_conf = ssl\n[ssl]\n"
                                   "system_default = all\n[all]\nMinProtocol = TLSv1\n"
                                   "CipherString = ALL:@SECLEVEL=0\n";
    char path[] = "/tmp/tls_test.XXXXXX";
    close(mkstemp(path));
    write_pem(path, settings);
    setenv("OPENSSL_CONF", path, 1);
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL);
    unlink(path);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_versions),
        TEST(test_old_versions_are_refused),
        TEST(test_name),
        TEST(test_expired),
        TEST(test_unknown_authority),
        TEST(test_a_server_is_no_authority),
        TEST(test_authorities_of_the_system),
        TEST(test_unverified_where_asked_for),
    };
    allow_everything();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
