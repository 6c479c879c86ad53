/* No secret in logs: whatever handles a credential runs here with everything logged, through all
 * that can go wrong with it, beside servers that repeat what they were sent. What an error says
 * counts as logged, as somebody logs it. Not even eight characters of a secret may be seen. */
#include "kube/credentials.h"
#include "kube_fake.h"
#include "prometheus/prometheus.h"
#include "tls_server.h"

#include <sys/stat.h>
#include <unistd.h>

#define TOKEN    "tk9Qw3Xz7Lm2Vb5Nr8HsYa4Ce6"
#define PASSWORD "pW4tGy6Kd1Fc0Jq2Zu7eRx9Mo5"
#define PIECE    8

enum kind { BY_TOKEN, BY_TOKEN_FILE, BY_PASSWORD, BY_PLUGIN, KIND_COUNT };

/* How a server answers: @ stands for what it was sent, in each form that it knows. */
struct way {
    int status; /* 0: body is all that is sent, and the connection is cut */
    const char *headers, *body;
};

struct scene {
    struct fake fake;
    struct buf log;
    FILE *errors; /* what libraries say on stderr */
    int stderr_fd;
    char dir[32];
    char *basic;   /* user and password, as sent */
    char *pems[4]; /* keys that were in use */
    const struct way *way;
    int arrived; /* requests with the credential */
    int done;
    bool ok;
};

/* --- what must not be seen ------------------------------------------------------------------- */
static int set_up(void **state)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    *state = s;
    snprintf(s->dir, sizeof(s->dir), "/tmp/secrets_test.XXXXXX");
    s->basic = base64_encode("operator:" PASSWORD, strlen("operator:" PASSWORD));
    s->errors = tmpfile();
    s->stderr_fd = dup(STDERR_FILENO);
    if (!mkdtemp(s->dir) || !s->errors || dup2(fileno(s->errors), STDERR_FILENO) < 0)
        return -1;
    buf_init(&s->log, (size_t)8 << 20);
    log_setup(LOG_DEBUG, LOG_LOGFMT);
    log_set_output_for_test(&s->log);
    return 0;
}

static char *path_of(const struct scene *s, const char *name)
{
    return xasprintf("%s/%s", s->dir, name);
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    static const char *const names[] = {"token", "user", "password", "ca", "cert", "key"};
    char line[1024];
    log_set_output_for_test(NULL);
    log_setup(LOG_INFO, LOG_LOGFMT);
    dup2(s->stderr_fd, STDERR_FILENO);
    close(s->stderr_fd);
    rewind(s->errors);
    while (fgets(line, sizeof(line), s->errors))
        fputs(line, stderr);
    fclose(s->errors);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_free char *path = path_of(s, names[i]);
        remove(path);
    }
    for (size_t i = 0; i < ARRAY_LEN(s->pems); i++)
        free(s->pems[i]);
    int result = rmdir(s->dir);
    buf_free(&s->log);
    free(s->basic);
    free(s);
    return result;
}

static void assert_unseen(const char *text, const char *where, const char *secret)
{
    for (const char *p = secret; strlen(p) >= PIECE; p++) {
        char piece[PIECE + 1];
        snprintf(piece, sizeof(piece), "%s", p);
        const char *at = strstr(text, piece);
        if (at)
            fail_msg("in %s: …%.300s", where, at - text > 200 ? at - 200 : text);
    }
}

/* The first line of a key is the same for all keys of a kind; the second is its own. */
static void assert_key_unseen(const char *text, const char *where, const char *pem)
{
    const char *line = strchr(strchr(pem, '\n') + 1, '\n') + 1;
    cleanup_free char *own = xasprintf("%.*s", (int)strcspn(line, "\n"), line);
    assert_true(strlen(own) > 2 * PIECE);
    assert_unseen(text, where, own);
}

static void assert_silent(const struct scene *s)
{
    char said[8192];
    fflush(stderr);
    ssize_t n = pread(fileno(s->errors), said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    const char *const texts[] = {buf_string(&s->log), said};
    static const char *const places[] = {"the log", "stderr"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_unseen(texts[i], places[i], TOKEN);
        assert_unseen(texts[i], places[i], PASSWORD);
        assert_unseen(texts[i], places[i], s->basic);
        for (size_t k = 0; k < ARRAY_LEN(s->pems) && s->pems[k]; k++)
            assert_key_unseen(texts[i], places[i], s->pems[k]);
    }
}

static void tell(const struct error *err)
{
    log_warn("failed", log_str("why", err->message));
}

static char *put(const struct scene *s, const char *name, const char *text)
{
    char *path = path_of(s, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return path;
}

/* --- a server that repeats what it is sent --------------------------------------------------- */
static const struct way ways[] = {
    {200, "", "{}"},
    {200, "", "<html>Hello @, and welcome"},
    {200, "", "{\"kind\":\"List\",\"x\":@"},
    {200, "", "@"},
    {302, "Location: /login?as=@\r\n", "to /login?as=@"},
    {400, "", "{\"message\":\"wrong header: @\"}"},
    {400, "", "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"@ is bad\"}"},
    {401, "WWW-Authenticate: Bearer error=\"@\"\r\n", "{\"message\":\"unknown: @\"}"},
    {401, "", "............................................................ unknown: @"},
    {403, "", "{\"message\":\"system:anonymous with @ may not\",\"code\":403}"},
    {404, "", "@ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @"},
    {500, "X-Request: @\r\n", "<h1>panic</h1>\n<pre>@</pre>"},
    {0, NULL, "@\r\n\r\n"},
    {0, NULL, "HTTP/1.1 @ OK\r\n\r\n"},
    {0, NULL, "HTTP/1.1 200 OK\r\n@\r\nContent-Length: 2\r\n\r\n{}"},
    {0, NULL, "HTTP/1.1 200 OK\r\nContent-Length: @\r\n\r\n{}"},
    {0, NULL, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 80\r\n\r\n@"},
    {0, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{\"a\":\"@"},
    {0, NULL, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n@\r\n"},
    {0, NULL, ""},
};

static char *filled(const char *text, const char *sent)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    for (; *text; text++)
        assert_int_equal(*text == '@' ? buf_puts(&out, sent) : buf_append(&out, text, 1), 0);
    return buf_take(&out);
}

/* The header, and what a server makes of it. */
static char *sent_by(struct scene *s, const struct fake_request *r)
{
    const char *at = strcasestr(r->head, "\r\nAuthorization: ");
    assert_non_null(at);
    cleanup_free char *value = xasprintf("%.*s", (int)strcspn(at + 17, "\r"), at + 17);
    bool basic = strncmp(value, "Basic ", 6) == 0;
    assert_string_equal(value + (basic ? 6 : 7), basic ? s->basic : TOKEN);
    s->arrived++;
    return xasprintf("Authorization: %s (%s)", value, basic ? "operator:" PASSWORD : TOKEN);
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct scene *s = arg;
    cleanup_free char *sent = sent_by(s, r);
    cleanup_free char *body = filled(s->way->body, sent);
    cleanup_free char *headers = filled(s->way->headers ? s->way->headers : "", sent);
    if (s->way->status > 0) {
        fake_reply(r->conn, s->way->status, headers, body);
    } else {
        fake_write(r->conn, body, strlen(body));
        fake_cut(r->conn);
    }
}

static void serve(struct scene *s, void (*on)(void *, const struct fake_request *))
{
    s->fake.on_request = on;
    s->fake.arg = s;
    uv_loop_init(&s->fake.loop);
    uv_timer_init(&s->fake.loop, &s->fake.watchdog);
    s->fake.watchdog.data = &s->fake;
    fake_listen(&s->fake);
    s->fake.http = http_new(&s->fake.loop, "test");
}

/* --- the API server -------------------------------------------------------------------------- */
#define ANSWERS(status)                                                                            \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","       \
    "\"status\":{" status "}}'"

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

static struct kube *client(struct scene *s, enum kind kind)
{
    cleanup_free char *server = xasprintf("http://127.0.0.1:%d", s->fake.port);
    cleanup_free char *file = put(s, "token", TOKEN "\n");
    char *args[] = {text("-c"), text(ANSWERS("\"token\":\"" TOKEN "\"")), NULL}, *env[] = {NULL};
    struct kube_exec exec = {.command = text("sh"),
                             .args = args,
                             .env = env,
                             .api_version = text("client.authentication.k8s.io/v1")};
    struct kube_config config = {.server = server};
    if (kind == BY_TOKEN)
        config.token = text(TOKEN);
    if (kind == BY_TOKEN_FILE)
        config.token_file = file;
    if (kind == BY_PLUGIN)
        config.exec = &exec;
    config.user = kind == BY_PASSWORD ? text("operator") : NULL;
    config.password = kind == BY_PASSWORD ? text(PASSWORD) : NULL;
    struct error err;
    struct kube *kube = kube_new(&s->fake.loop, s->fake.http, &config, NULL, &err);
    assert_non_null(kube);
    return kube;
}

static void on_kube_done(void *arg, const struct kube_response *response)
{
    struct scene *s = arg;
    s->done++;
    s->ok = response->error.code == ERROR_NONE;
    tell(&response->error);
}

static void test_requests_to_the_api_server(void **state)
{
    struct scene *s = *state;
    serve(s, on_request);
    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
            struct kube *kube = client(s, kind);
            s->way = &ways[i];
            s->done = s->arrived = 0;
            kube_send(kube, &(struct kube_request){
                                .path = "/api/v1/pods", .on_done = on_kube_done, .arg = s});
            fake_run_until(&s->fake, s->done);
            assert_true(s->arrived > 0);
            assert_true(i > 0 || s->ok);
            kube_free(kube);
        }
    }
    fake_stop(&s->fake);
    assert_silent(s);
}

static void on_watch_request(void *arg, const struct fake_request *r)
{
    struct scene *s = arg;
    if (strstr(r->target, "watch=1")) {
        cleanup_free char *sent = sent_by(s, r), *line = filled("@\n", sent);
        fake_stream_begin(r->conn);
        fake_stream_write(r->conn, line);
        fake_stream_end(r->conn);
    } else if (s->way) {
        on_request(arg, r);
    } else {
        fake_reply(r->conn, 200, "", "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}");
    }
}

static void on_object(void *arg, const json_t *object, bool deleted)
{
    (void)arg, (void)object, (void)deleted;
}

static void on_list(void *arg)
{
    (void)arg;
}

static void watch_in_vain(struct scene *s, enum kind kind, const char *complaint)
{
    struct kube *kube = client(s, kind);
    struct kube_watch_spec spec = {
        .path = "/api/v1/pods", .handler = {on_object, on_list, on_list, NULL}, .arg = s};
    s->arrived = 0;
    struct kube_watch *watch = kube_watch_start(kube, &spec);
    fake_run_until(&s->fake, strstr(buf_string(&s->log), complaint));
    assert_true(s->arrived > 0);
    assert_silent(s);
    buf_clear(&s->log);
    kube_watch_stop(watch);
    kube_free(kube);
}

static void test_watches(void **state)
{
    struct scene *s = *state;
    serve(s, on_watch_request);
    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        for (size_t i = 1; i < ARRAY_LEN(ways); i++) {
            s->way = &ways[i];
            watch_in_vain(s, kind, "watch fails");
        }
        s->way = NULL;
        watch_in_vain(s, kind, "watch cannot be read");
    }
    fake_stop(&s->fake);
}

/* --- Prometheus ------------------------------------------------------------------------------ */
static void on_prom_done(void *arg, const struct prom_result *result, const struct error *err)
{
    struct scene *s = arg;
    s->done++;
    s->ok = result != NULL;
    if (err)
        tell(err);
}

static void on_series(void *arg, const struct prom_series *series)
{
    (void)arg, (void)series;
}

static void ask_prometheus(struct scene *s, const struct prom_config *config)
{
    struct error err = {0};
    struct prom *prom = prom_new(&s->fake.loop, s->fake.http, config, &err);
    assert_non_null(prom);
    for (int streamed = 0; streamed < 2; streamed++) {
        s->done = 0;
        if (streamed)
            prom_query_each(prom, "up", on_series, on_prom_done, s);
        else
            prom_query(prom, "up", 0, on_prom_done, s);
        fake_run_until(&s->fake, s->done);
        assert_false(s->ok);
    }
    prom_free(prom);
}

static void test_queries(void **state)
{
    struct scene *s = *state;
    serve(s, on_request);
    cleanup_free char *url = xasprintf("http://127.0.0.1:%d", s->fake.port);
    cleanup_free char *token = put(s, "token", TOKEN "\n");
    cleanup_free char *user = put(s, "user", "operator\n");
    cleanup_free char *password = put(s, "password", PASSWORD "\n");
    const struct prom_config configs[] = {
        {.url = url, .token_file = token},
        {.url = url, .user_file = user, .password_file = password},
        {.url = "http://127.0.0.1:1", .token_file = token},
        {.url = "http://127.0.0.1:1", .user_file = user, .password_file = password}};
    for (size_t k = 0; k < ARRAY_LEN(configs); k++) {
        for (size_t i = 0; i < (k < 2 ? ARRAY_LEN(ways) : 1); i++) {
            s->way = &ways[i];
            s->arrived = 0;
            ask_prometheus(s, &configs[k]);
            assert_int_equal(s->arrived, k < 2 ? 2 : 0);
        }
    }
    fake_stop(&s->fake);
    assert_silent(s);
}

static void refuse_prometheus(struct scene *s, const struct prom_config *config)
{
    struct error err = {0};
    assert_null(prom_new(&s->fake.loop, s->fake.http, config, &err));
    tell(&err);
}

/* What cannot be used at all, and what cannot be used any more. */
static void test_files_of_prometheus(void **state)
{
    struct scene *s = *state;
    serve(s, on_request);
    cleanup_free char *token = put(s, "token", TOKEN "\nX-Other: " PASSWORD);
    cleanup_free char *user = put(s, "user", "operator");
    cleanup_free char *password = put(s, "password", PASSWORD "\n\001");
    cleanup_free char *key = put(s, "key", PASSWORD);
    static const char *const urls[] = {
        "https://operator:" PASSWORD "@h",         "operator:" PASSWORD "@h:9090",
        "ftp://operator:" PASSWORD "@h",           "http://operator:" PASSWORD "@h:99999",
        "http://operator:" PASSWORD "@h /x",       "//operator:" PASSWORD "@h",
        "https://operator:" PASSWORD "@h/?query=", "https://" TOKEN "@h"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        refuse_prometheus(s, &(struct prom_config){.url = urls[i]});
    const struct prom_config tls = {
        .url = "https://127.0.0.1:1", .cert_file = key, .key_file = key};
    refuse_prometheus(s, &tls);
    const struct prom_config wrong[] = {
        {.url = "http://127.0.0.1:1", .token_file = token},
        {.url = "http://127.0.0.1:1", .token_file = s->dir},
        {.url = "http://127.0.0.1:1", .user_file = user, .password_file = password},
        {.url = "http://127.0.0.1:1", .user_file = password, .password_file = s->dir}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        ask_prometheus(s, &wrong[i]);
    fake_stop(&s->fake);
    assert_non_null(strstr(buf_string(&s->log), "more than one line"));
    assert_silent(s);
}

/* --- kubeconfigs ----------------------------------------------------------------------------- */
#define CONFIG(cluster, user)                                                                      \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"                  \
    "clusters: [{name: k, cluster: {" cluster "}}]\nusers:\n- name: u\n  user: {" user "}\n"
#define SERVER     "server: 'https://k'"
#define EXEC(more) CONFIG(SERVER, "exec: {command: sh, " more "}")
#define EXEC_V1    "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "

static void test_kubeconfigs(void **state)
{
    struct scene *s = *state;
    static const char *const wrong[] = {
        CONFIG(SERVER, "token: [" TOKEN "]"),
        CONFIG(SERVER, "token: {" TOKEN ": 1}"),
        CONFIG(SERVER, "token: *" TOKEN),
        CONFIG(SERVER, "token: !!int " TOKEN),
        CONFIG(SERVER, "token: !!bool '" TOKEN "'"),
        CONFIG(SERVER, "token: \"" TOKEN "\\q\""),
        CONFIG(SERVER, "token: '" TOKEN),
        CONFIG(SERVER, "token: " TOKEN ": " TOKEN),
        CONFIG(SERVER, "token: @" TOKEN),
        CONFIG(SERVER, "token: %" TOKEN),
        CONFIG(SERVER, "token: " TOKEN ", token: " TOKEN),
        CONFIG(SERVER, "token: " TOKEN ", username: operator, password: " PASSWORD),
        CONFIG(SERVER, "username: operator, password: [" PASSWORD "]"),
        CONFIG(SERVER, "password: &" PASSWORD " *" PASSWORD),
        CONFIG(SERVER, "client-key-data: '" PASSWORD "!'"),
        CONFIG(SERVER, "client-key-data: " PASSWORD),
        CONFIG(SERVER, "client-key-data: [" PASSWORD "]"),
        CONFIG(SERVER, "client-certificate-data: LS0tLS1CRUdJTiBYLS0tLS0K, token: " TOKEN),
        CONFIG(SERVER, "auth-provider: {config: {client-secret: " PASSWORD "}}"),
        CONFIG(SERVER, "as: operator, token: " TOKEN),
        CONFIG("server: 'https://operator:" PASSWORD "@k'", "token: t"),
        CONFIG("server: 'https://" TOKEN "@k:6443/x'", "token: t"),
        CONFIG("server: 'operator:" PASSWORD "@k'", "token: t"),
        CONFIG("server: 'ftp://operator:" PASSWORD "@k'", "token: t"),
        CONFIG(SERVER ", proxy-url: 'http://operator:" PASSWORD "@p'", "token: t"),
        EXEC("apiVersion: " TOKEN),
        EXEC(EXEC_V1 "args: [" TOKEN ", 7]"),
        EXEC(EXEC_V1 "args: " TOKEN),
        EXEC(EXEC_V1 "env: [{name: PASSWORD, value: [" PASSWORD "]}]"),
        EXEC(EXEC_V1 "env: [{name: 'A=" PASSWORD "', value: x}]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct kube_config config;
        struct error err = {0};
        if (kube_config_parse(wrong[i], strlen(wrong[i]), NULL, NULL, &config, &err) == 0)
            fail_msg("accepted: %s", wrong[i]);
        tell(&err);
        assert_silent(s);
    }
}

static void test_what_is_said_beside_a_kubeconfig(void **state)
{
    struct scene *s = *state;
    struct kube_config config;
    struct error err = {0};
    cleanup_free char *file = put(s, "token", CONFIG(SERVER, "token: " TOKEN));
    const struct kube_config_choice choices[] = {
        {.server = "https://operator:" PASSWORD "@h", .token = TOKEN},
        {.server = "operator:" PASSWORD "@h"},
        {.context = "none", .token = TOKEN},
        {.user = "none", .token = TOKEN}};
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        assert_int_equal(kube_config_load_as(file, &choices[i], &config, &err), -1);
        tell(&err);
    }
    assert_silent(s);
}

/* --- tokens in files, and plugins ------------------------------------------------------------ */
static void on_credentials(void *arg, const char *bearer, const struct http_tls *tls,
                           const struct error *err)
{
    struct scene *s = arg;
    (void)tls;
    s->done++;
    s->ok = bearer != NULL;
    if (err)
        tell(err);
}

static void get(struct scene *s, const struct kube_config *config, bool ok)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct kube_credentials *c = kube_credentials_new(&loop, config);
    s->done = 0;
    kube_credentials_get(c, on_credentials, s);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(s->done, 1);
    assert_int_equal(s->ok, ok);
    kube_credentials_free(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_tokens(void **state)
{
    struct scene *s = *state;
    cleanup_free char *file = put(s, "token", TOKEN "\001" TOKEN);
    const struct kube_config config = {.server = text("https://h"), .token_file = file};
    const struct kube_config fixed = {.server = text("https://h"),
                                      .token = text(TOKEN "\r\nX: " PASSWORD)};
    get(s, &fixed, false);
    get(s, &config, false);
    uv_loop_t loop;
    uv_loop_init(&loop);
    free(put(s, "token", TOKEN));
    struct kube_credentials *c = kube_credentials_new(&loop, &config);
    kube_credentials_get(c, on_credentials, s);
    assert_true(s->ok);
    free(put(s, "token", "\002" PASSWORD));
    kube_credentials_invalidate(c);
    kube_credentials_get(c, on_credentials, s);
    assert_true(s->ok);
    kube_credentials_free(c);
    uv_loop_close(&loop);
    assert_non_null(strstr(buf_string(&s->log), "keeping the old token"));
    assert_silent(s);
}

static void test_plugins(void **state)
{
    struct scene *s = *state;
    static const char *const scripts[] = {
        "echo " TOKEN,
        "echo '{\"token\":\"" TOKEN "\"'",
        "echo '{\"token\":\"" TOKEN "\"} " TOKEN "'",
        "echo '{\"a\":1,\"a\":\"" TOKEN "\"}'",
        "echo '{" TOKEN ":1}'",
        "echo '[\"0123456789" TOKEN "]'",
        "echo '{\"a\": tkQwXzLmVbNrHs}'", /* letters alone are one word to a parser */
        ANSWERS("\"token\":\"" TOKEN " " TOKEN "\""),
        ANSWERS("\"token\":[\"" TOKEN "\"]"),
        ANSWERS("\"clientKeyData\":\"" PASSWORD "\""),
        ANSWERS("\"token\":\"" TOKEN "\",\"expirationTimestamp\":\"soon\""),
        ANSWERS("\"token\":\"" TOKEN "\"") "; exit 3",
        ANSWERS("\"token\":\"" TOKEN "\"") "; kill -9 $$",
        "echo \"cannot log in as operator:$APP_PASSWORD\" >&2; exit 1",
        "set -x; : \"$app_token\" \"$APP_PASSWORD\"; exit 1",
    };
    char *env[] = {text("APP_PASSWORD=" PASSWORD), text("app_token=" TOKEN), NULL};
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        char *args[] = {text("-c"), text(scripts[i]), NULL};
        struct kube_exec exec = {.command = text("sh"),
                                 .args = args,
                                 .env = env,
                                 .api_version = text("client.authentication.k8s.io/v1")};
        get(s, &(struct kube_config){.server = text("https://h"), .exec = &exec}, false);
    }
    assert_unseen(buf_string(&s->log), "the log", "tkQwXzLmVbNrHs");
    assert_non_null(strstr(buf_string(&s->log), "cannot log in as operator:*****"));
    assert_silent(s);
}

/* --- client certificates --------------------------------------------------------------------- */
/* A server that wants to know who asks, and knows those of one authority. */
static void ask_over_tls(struct scene *s, const struct pair *authority,
                         const struct pair *server_pair, const struct prom_config *files)
{
    struct tls_server server = {0};
    struct error err = {0};
    struct prom_config config = *files;
    uv_loop_t loop;
    uv_loop_init(&loop);
    tls_server_start(&server, &loop, server_pair, TLS1_3_VERSION);
    server.answer = "HTTP/1.1 200 OK\r\nContent-Length: 63\r\n\r\n"
                    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}";
    SSL_CTX_set_verify(server.context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(server.context), authority->cert);
    cleanup_free char *url = xasprintf("https://127.0.0.1:%d", server.port);
    config.url = url;
    struct http *http = http_new(&loop, "test");
    struct prom *prom = prom_new(&loop, http, &config, &err);
    assert_non_null(prom);
    s->done = 0;
    prom_query(prom, "up", 0, on_prom_done, s);
    while (s->done == 0)
        uv_run(&loop, UV_RUN_ONCE);
    s->arrived = strstr(server.head, "Authorization: Bearer " TOKEN) != NULL;
    prom_free(prom);
    http_free(http);
    tls_server_stop(&server);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_client_certificates(void **state)
{
    struct scene *s = *state;
    struct pair ours = pair_new("ours", NULL, NULL, 86400),
                theirs = pair_new("x", NULL, NULL, 86400);
    struct pair server = pair_new("server", "IP:127.0.0.1", &ours, 86400);
    struct pair stranger = pair_new("stranger", "IP:127.0.0.1", &theirs, 86400);
    const struct pair *const by[] = {&ours, &theirs};
    cleanup_free char *ca_pem = pair_cert_pem(&ours);
    cleanup_free char *ca = put(s, "ca", ca_pem), *token = put(s, "token", TOKEN);
    cleanup_free char *cert = path_of(s, "cert"), *key = path_of(s, "key");
    const struct prom_config files = {
        .ca_file = ca, .cert_file = cert, .key_file = key, .token_file = token};
    for (size_t i = 0; i < ARRAY_LEN(by); i++) { /* known, and unknown */
        struct pair client = pair_new("client", "DNS:client", by[i], 86400);
        cleanup_free char *cert_pem = pair_cert_pem(&client);
        s->pems[i] = pair_key_pem(&client);
        free(put(s, "cert", cert_pem));
        free(put(s, "key", s->pems[i]));
        ask_over_tls(s, &ours, &server, &files);
        assert_int_equal(s->ok, i == 0);
        assert_int_equal(s->arrived, i == 0);
        ask_over_tls(s, &ours, &stranger, &files);
        assert_false(s->ok || s->arrived);
        free(put(s, "key", s->pems[0])); /* of another certificate, from the second time on */
        ask_over_tls(s, &ours, &server, &files);
        assert_int_equal(s->ok, i == 0);
        pair_free(&client);
    }
    free(put(s, "key", "-----BEGIN PRIVATE KEY-----\n" PASSWORD "\n-----END PRIVATE KEY-----\n"));
    ask_over_tls(s, &ours, &server, &files);
    assert_false(s->ok || s->arrived);
    pair_free(&ours), pair_free(&theirs), pair_free(&server), pair_free(&stranger);
    assert_silent(s);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_requests_to_the_api_server),
        TEST(test_watches),
        TEST(test_queries),
        TEST(test_files_of_prometheus),
        TEST(test_kubeconfigs),
        TEST(test_what_is_said_beside_a_kubeconfig),
        TEST(test_tokens),
        TEST(test_plugins),
        TEST(test_client_certificates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
