/* Queries over HTTP: the URL, the credentials, and what to say when it does not work. */
#include "base/memory.h"
#include "prometheus/internal.h"
#include "prometheus/scan.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_TIMEOUT_MS 10000
#define MAX_ANSWER         ((size_t)256 << 20)
#define MAX_FORM           ((size_t)4 << 20)
#define MAX_PEM            ((size_t)1 << 20)
#define MAX_SECRET         ((size_t)64 << 10)

enum tls_file { CA_FILE, CERT_FILE, KEY_FILE, TLS_FILE_COUNT };

/* One reading of the TLS files, kept for as long as a request uses it. */
struct tls {
    struct http_tls http;
    struct stat seen[TLS_FILE_COUNT];
    size_t users;
};

struct prom {
    uv_loop_t *loop;
    struct http *http;
    struct prom_call *calls;
    struct tls *tls;
    char *url; /* no trailing slash */
    char *tls_files[TLS_FILE_COUNT];
    char *token_file, *user_file, *password_file;
    bool insecure;
    int64_t timeout_ms;
};

struct prom_call {
    struct prom *prom;
    struct prom_call *next, **link;
    struct http_call *http; /* NULL: it failed before it was sent, and error tells the loop later */
    uv_timer_t timer;
    struct error error;
    struct tls *tls;
    struct prom_stream *stream; /* NULL: the answer is read as a whole */
    prom_done on_done;
    void *arg;
};

/* --- TLS files ----------------------------------------------------------------------------- */
static void tls_release(struct tls *tls)
{
    if (!tls || --tls->users > 0)
        return;
    http_tls_clear(&tls->http);
    free(tls);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool tls_changed(const struct prom *prom)
{
    for (int i = 0; i < TLS_FILE_COUNT; i++) {
        struct stat now;
        if (prom->tls_files[i] &&
            (stat(prom->tls_files[i], &now) < 0 || !same_file(&now, &prom->tls->seen[i])))
            return true;
    }
    return false;
}

static int read_pem(const char *path, char **pem, struct stat *seen, struct error *err)
{
    if (!path)
        return 0;
    if (stat(path, seen) < 0)
        *seen = (struct stat){0}; /* file_read says why */
    *pem = file_read(path, MAX_PEM, NULL, err);
    if (!*pem)
        return -1;
    if (!strstr(*pem, "-----BEGIN "))
        return error_set(err, ERROR_INVALID, "%s holds no PEM", path);
    return 0;
}

/* Takes the place of the last reading only when all files could be read. */
static int tls_load(struct prom *prom, struct error *err)
{
    struct tls *tls = xcalloc(1, sizeof(*tls));
    tls->users = 1;
    tls->http.insecure = prom->insecure;
    char **pems[] = {&tls->http.ca_pem, &tls->http.cert_pem, &tls->http.key_pem};
    for (int i = 0; i < TLS_FILE_COUNT; i++) {
        if (read_pem(prom->tls_files[i], pems[i], &tls->seen[i], err) < 0) {
            tls_release(tls);
            return -1;
        }
    }
    tls_release(prom->tls);
    prom->tls = tls;
    return 0;
}

/* --- creation ------------------------------------------------------------------------------ */
static bool has_part(CURLU *url, CURLUPart part)
{
    char *value = NULL;
    bool has = curl_url_get(url, part, &value, 0) == CURLUE_OK && *value;
    curl_free(value);
    return has;
}

static int check_parts(CURLU *url, struct error *err)
{
    char *scheme = NULL;
    bool http = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    if (!http)
        return error_set(err, ERROR_INVALID, "it must begin with http:// or https://");
    if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
        return error_set(err, ERROR_INVALID, "user and password belong into files of their own");
    if (has_part(url, CURLUPART_QUERY) || has_part(url, CURLUPART_FRAGMENT))
        return error_set(err, ERROR_INVALID, "nothing may follow the path");
    return 0;
}

/* The URL is not repeated in the message when it may hold a password. */
static int set_url(struct prom *prom, const char *text, struct error *err)
{
    CURLU *url = curl_url();
    if (!url)
        out_of_memory();
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text, 0);
    int result = code == CURLUE_OK ? check_parts(url, err)
                 : code == CURLUE_BAD_SCHEME || code == CURLUE_UNSUPPORTED_SCHEME
                     ? error_set(err, ERROR_INVALID, "it must begin with http:// or https://")
                     : error_set(err, ERROR_INVALID, "%s", curl_url_strerror(code));
    curl_url_cleanup(url);
    if (result < 0)
        return strchr(text, '@') ? error_prefix(err, "the URL of Prometheus")
                                 : error_prefix(err, "the URL of Prometheus, \"%.200s\"", text);
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/')
        len--;
    prom->url = xasprintf("%.*s", (int)len, text);
    return 0;
}

static int check_files(const struct prom_config *c, struct error *err)
{
    if (!c->user_file != !c->password_file)
        return error_set(
            err, ERROR_INVALID,
            "basic authentication at Prometheus needs a user file and a password file");
    if (c->token_file && c->user_file)
        return error_set(err, ERROR_INVALID,
                         "either a token or user and password can be used at Prometheus, not both");
    if (!c->cert_file != !c->key_file)
        return error_set(
            err, ERROR_INVALID,
            "a client certificate for Prometheus needs a certificate file and a key file");
    return 0;
}

struct prom *prom_new(uv_loop_t *loop, struct http *http, const struct prom_config *config,
                      struct error *err)
{
    struct prom *prom = xcalloc(1, sizeof(*prom));
    prom->loop = loop;
    prom->http = http;
    prom->tls_files[CA_FILE] = xstrdup(config->ca_file);
    prom->tls_files[CERT_FILE] = xstrdup(config->cert_file);
    prom->tls_files[KEY_FILE] = xstrdup(config->key_file);
    prom->token_file = xstrdup(config->token_file);
    prom->user_file = xstrdup(config->user_file);
    prom->password_file = xstrdup(config->password_file);
    prom->insecure = config->insecure;
    prom->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (check_files(config, err) < 0 || set_url(prom, config->url ? config->url : "", err) < 0 ||
        tls_load(prom, err) < 0) {
        prom_free(prom);
        return NULL;
    }
    return prom;
}

/* --- the end of a query -------------------------------------------------------------------- */
static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Hands the answer over when the call is no longer under way, so that on_done may do anything. */
static void finish(struct prom_call *call, const struct prom_result *result,
                   const struct error *err)
{
    prom_done on_done = call->on_done;
    void *arg = call->arg;
    struct error copy = *err;
    if (call->next)
        call->next->link = call->link;
    *call->link = call->next;
    tls_release(call->tls);
    prom_stream_free(call->stream);
    if (call->http)
        free(call);
    else
        uv_close((uv_handle_t *)&call->timer, on_timer_closed);
    on_done(arg, result, result ? NULL : &copy);
}

void prom_free(struct prom *prom)
{
    if (!prom)
        return;
    for (struct prom_call *call = prom->calls, *next; call; call = next) {
        struct error err;
        next = call->next;
        error_set(&err, ERROR_CANCELLED, "shutting down");
        if (call->http)
            http_cancel(call->http);
        finish(call, NULL, &err);
    }
    tls_release(prom->tls);
    for (int i = 0; i < TLS_FILE_COUNT; i++)
        free(prom->tls_files[i]);
    free(prom->token_file);
    free(prom->user_file);
    free(prom->password_file);
    free(prom->url);
    free(prom);
}

static void credentials_used(const struct prom *prom, char *out, size_t size)
{
    if (prom->token_file)
        snprintf(out, size, "the bearer token in %s was sent", prom->token_file);
    else if (prom->user_file)
        snprintf(out, size, "the user in %s and the password in %s were sent", prom->user_file,
                 prom->password_file);
    else if (prom->tls_files[CERT_FILE])
        snprintf(out, size, "the client certificate in %s was offered", prom->tls_files[CERT_FILE]);
    else
        snprintf(out, size, "no credentials are configured");
}

static enum error_code status_code(const struct http_response *response)
{
    switch (response->status) {
    case 401:
    case 403:
        return ERROR_FORBIDDEN;
    case 404:
        return ERROR_NOT_FOUND;
    case 429:
        return ERROR_BUSY;
    case 408:
    case 504:
        return ERROR_TIMEOUT;
    case 503:
        return response->retry_after_ms >= 0 ? ERROR_BUSY : ERROR_UNAVAILABLE;
    default:
        return response->status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    }
}

static int explain_status(const struct prom *prom, const struct http_response *response,
                          struct error *err)
{
    int status = response->status;
    char first[100], hint[200] = "";
    if (status == 401 || status == 403) {
        credentials_used(prom, hint, sizeof(hint));
        return error_set(err, ERROR_FORBIDDEN, "Prometheus at %.200s answered %d: %s", prom->url,
                         status, hint);
    }
    if (prom_parse_refusal(response->body, response->body_len, err)) {
        http_hide(response, err->message);
        return -1;
    }
    scan_quote(response->body, response->body_len, first, sizeof(first));
    http_hide(response, first);
    const char *why = status / 100 == 3 ? " (redirects are not followed: is the URL right?)"
                      : status == 404   ? " (is the path of the URL right?)"
                                        : "";
    return error_set(err, status_code(response), "Prometheus at %.200s answered %d%s: \"%s\"",
                     prom->url, status, why, first);
}

static void on_answer(void *arg, const struct http_response *response)
{
    struct prom_call *call = arg;
    struct prom_result result = {0};
    struct error err = {0};
    int outcome;
    if (call->stream && prom_stream_failed(call->stream)) {
        outcome = prom_stream_end(call->stream, &result, &err);
        http_hide(response, err.message);
    } else if (response->error.code != ERROR_NONE) {
        err = response->error;
        outcome = error_prefix(&err, "Prometheus at %.200s", call->prom->url);
    } else if (response->status != 200) {
        outcome = explain_status(call->prom, response, &err);
    } else {
        outcome = call->stream ? prom_stream_end(call->stream, &result, &err)
                               : prom_parse(response->body, response->body_len, &result, &err);
        http_hide(response, err.message);
    }
    finish(call, outcome < 0 ? NULL : &result, &err);
    prom_result_clear(&result);
}

static int on_chunk(void *arg, const char *data, size_t len)
{
    const struct prom_call *call = arg;
    return prom_stream_feed(call->stream, data, len);
}

static void on_failed(uv_timer_t *timer)
{
    struct prom_call *call = timer->data;
    finish(call, NULL, &call->error);
}

/* --- asking -------------------------------------------------------------------------------- */
/* One line without its end. What else is below a space could add lines to the request's header. */
static char *read_secret(const char *path, struct error *err)
{
    size_t len;
    char *secret = file_read(path, MAX_SECRET, &len, err);
    if (!secret)
        return NULL;
    while (len > 0 && (secret[len - 1] == '\n' || secret[len - 1] == '\r'))
        secret[--len] = '\0';
    bool clean = len > 0;
    for (size_t i = 0; i < len; i++)
        clean &= (unsigned char)secret[i] >= 0x20;
    if (!clean) {
        error_set(err, ERROR_INVALID, "%s %s", path,
                  len > 0 ? "holds more than one line" : "is empty");
        free(secret);
        return NULL;
    }
    return secret;
}

static int send_form(struct prom_call *call, const char *path, const struct buf *form,
                     struct error *err)
{
    struct prom *prom = call->prom;
    cleanup_free char *url = xasprintf("%s%s", prom->url, path);
    cleanup_free char *token = prom->token_file ? read_secret(prom->token_file, err) : NULL;
    cleanup_free char *user = prom->user_file ? read_secret(prom->user_file, err) : NULL;
    cleanup_free char *password = NULL;
    if ((prom->token_file && !token) || (prom->user_file && !user))
        return -1;
    if (prom->password_file && !(password = read_secret(prom->password_file, err)))
        return -1;
    struct http_request request = {.method = "POST",
                                   .url = url,
                                   .content_type = "application/x-www-form-urlencoded",
                                   .bearer = token,
                                   .user = user,
                                   .password = password,
                                   .body = buf_string(form),
                                   .body_len = form->len,
                                   .tls = &call->tls->http,
                                   .timeout_ms = prom->timeout_ms,
                                   .max_body = MAX_ANSWER,
                                   .on_chunk = call->stream ? on_chunk : NULL,
                                   .on_done = on_answer,
                                   .arg = call};
    call->http = http_send(prom->http, &request, err);
    return call->http ? 0 : -1;
}

static struct tls *current_tls(struct prom *prom)
{
    struct error err;
    if (tls_changed(prom) && tls_load(prom, &err) < 0)
        log_warn("cannot read the TLS files for Prometheus again, using what they held before",
                 log_str("error", err.message));
    prom->tls->users++;
    return prom->tls;
}

/* Adds what all queries have. The server gives up a little before we do, so that its words arrive.
 */
static int begin_form(const struct prom *prom, struct buf *form, const char *query)
{
    cleanup_free char *escaped = http_escape(query);
    buf_init(form, MAX_FORM);
    return buf_printf(form, "query=%s&timeout=%lldms", escaped,
                      (long long)(prom->timeout_ms - prom->timeout_ms / 10));
}

static void ask(struct prom *prom, const char *path, const struct buf *form, int formed,
                prom_each on_series, prom_done on_done, void *arg)
{
    struct prom_call *call = xcalloc(1, sizeof(*call));
    call->prom = prom;
    call->on_done = on_done;
    call->arg = arg;
    call->tls = current_tls(prom);
    call->stream = on_series ? prom_stream_new(on_series, arg) : NULL;
    call->link = &prom->calls;
    call->next = prom->calls;
    if (call->next)
        call->next->link = &call->next;
    prom->calls = call;
    if (formed < 0)
        error_set(&call->error, ERROR_TOO_LARGE, "the query is longer than %zu bytes", MAX_FORM);
    else if (send_form(call, path, form, &call->error) == 0)
        return;
    call->timer.data = call;
    uv_timer_init(prom->loop, &call->timer);
    uv_timer_start(&call->timer, on_failed, 0, 0);
}

void prom_query(struct prom *prom, const char *query, double time_s, prom_done on_done, void *arg)
{
    cleanup_buf struct buf form;
    int formed = begin_form(prom, &form, query);
    if (formed == 0 && time_s > 0)
        formed = buf_printf(&form, "&time=%.3f", time_s);
    ask(prom, "/api/v1/query", &form, formed, NULL, on_done, arg);
}

void prom_query_each(struct prom *prom, const char *query, prom_each on_series, prom_done on_done,
                     void *arg)
{
    cleanup_buf struct buf form;
    int formed = begin_form(prom, &form, query);
    ask(prom, "/api/v1/query", &form, formed, on_series, on_done, arg);
}

void prom_query_range_each(struct prom *prom, const char *query, double start_s, double end_s,
                           double step_s, prom_each on_series, prom_done on_done, void *arg)
{
    cleanup_buf struct buf form;
    int formed = begin_form(prom, &form, query);
    if (formed == 0)
        formed = buf_printf(&form, "&start=%.3f&end=%.3f&step=%.3f", start_s, end_s, step_s);
    ask(prom, "/api/v1/query_range", &form, formed, on_series, on_done, arg);
}

void prom_query_range(struct prom *prom, const char *query, double start_s, double end_s,
                      double step_s, prom_done on_done, void *arg)
{
    prom_query_range_each(prom, query, start_s, end_s, step_s, NULL, on_done, arg);
}
