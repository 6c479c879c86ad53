/* A TLS server on the test's own loop, and certificates made as the test needs them. */
#ifndef FAASRL_TESTS_TLS_SERVER_H
#define FAASRL_TESTS_TLS_SERVER_H

#include "base/base.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

/* --- certificates ---------------------------------------------------------------------------- */
struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static inline void pair_free(struct pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

static inline void pair_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* names: subjectAltName, NULL for an authority; by NULL: signed by itself. Valid from a day before
 * now until valid_s after now. */
static inline struct pair pair_new(const char *common_name, const char *names,
                                   const struct pair *by, long valid_s)
{
    static long serial;
    struct pair pair = {X509_new(), EVP_EC_gen("P-256")};
    const struct pair *issuer = by ? by : &pair;
    X509_NAME *name = X509_get_subject_name(pair.cert);
    X509_set_version(pair.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(pair.cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(pair.cert), -2L * 86400);
    X509_gmtime_adj(X509_getm_notAfter(pair.cert), valid_s);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1, -1,
                               0);
    X509_set_issuer_name(pair.cert, X509_get_subject_name(issuer->cert));
    X509_set_pubkey(pair.cert, pair.key);
    pair_extend(pair.cert, issuer->cert, NID_basic_constraints,
                names ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        pair_extend(pair.cert, issuer->cert, NID_subject_alt_name, names);
    assert_true(X509_sign(pair.cert, issuer->key, EVP_sha256()) > 0);
    return pair;
}

static inline char *pem_take(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    char *pem = xasprintf("%.*s", (int)len, data);
    BIO_free(bio);
    return pem;
}

static inline char *pair_cert_pem(const struct pair *pair)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509(bio, pair->cert), 1);
    return pem_take(bio);
}

static inline char *pair_key_pem(const struct pair *pair)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, pair->key, NULL, NULL, 0, NULL, NULL), 1);
    return pem_take(bio);
}

/* --- the server ------------------------------------------------------------------------------ */
struct tls_conn;

struct tls_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    SSL_CTX *context;
    int port;
    struct tls_conn *conns;
    const char *answer; /* to every request, as a whole */
    char version[16];   /* of the last request's connection */
    char head[1024];    /* the last request */
};

struct tls_conn {
    uv_tcp_t tcp;
    struct tls_server *server;
    struct tls_conn *next;
    SSL *ssl;
    BIO *in, *out;
    bool closing;
};

static inline void tls_on_closed(uv_handle_t *handle)
{
    struct tls_conn *conn = handle->data, **link = &conn->server->conns;
    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    SSL_free(conn->ssl);
    free(conn);
}

static inline void tls_cut(struct tls_conn *conn)
{
    if (!conn->closing)
        uv_close((uv_handle_t *)&conn->tcp, tls_on_closed);
    conn->closing = true;
}

static inline void tls_on_written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
    free(write);
}

static inline void tls_flush(struct tls_conn *conn)
{
    char *data;
    long len = BIO_get_mem_data(conn->out, &data);
    if (len <= 0 || conn->closing)
        return;
    uv_write_t *write = xcalloc(1, sizeof(*write));
    write->data = xcalloc(1, (size_t)len);
    memcpy(write->data, data, (size_t)len);
    uv_buf_t buf = uv_buf_init(write->data, (unsigned)len);
    (void)BIO_reset(conn->out);
    uv_write(write, (uv_stream_t *)&conn->tcp, &buf, 1, tls_on_written);
}

/* The requests here are of one piece, and without a body. */
static inline void tls_talk(struct tls_conn *conn)
{
    struct tls_server *server = conn->server;
    char head[sizeof(server->head)];
    int n = SSL_is_init_finished(conn->ssl) || SSL_do_handshake(conn->ssl) == 1
                ? SSL_read(conn->ssl, head, sizeof(head) - 1)
                : -1;
    if (n > 0) {
        head[n] = '\0';
        memcpy(server->head, head, (size_t)n + 1);
        snprintf(server->version, sizeof(server->version), "%s", SSL_get_version(conn->ssl));
        SSL_write(conn->ssl, server->answer, (int)strlen(server->answer));
    }
    tls_flush(conn);
}

static inline void tls_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(xcalloc(1, size), (unsigned)size);
}

static inline void tls_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct tls_conn *conn = stream->data;
    if (n > 0 && BIO_write(conn->in, buf->base, (int)n) == (int)n)
        tls_talk(conn);
    else if (n < 0)
        tls_cut(conn);
    free(buf->base);
}

static inline void tls_on_connection(uv_stream_t *listener, int status)
{
    struct tls_server *server = listener->data;
    struct tls_conn *conn = xcalloc(1, sizeof(*conn));
    assert_int_equal(status, 0);
    conn->server = server;
    conn->next = server->conns;
    server->conns = conn;
    conn->ssl = SSL_new(server->context);
    conn->in = BIO_new(BIO_s_mem());
    conn->out = BIO_new(BIO_s_mem());
    SSL_set_bio(conn->ssl, conn->in, conn->out);
    SSL_set_accept_state(conn->ssl);
    uv_tcp_init(server->loop, &conn->tcp);
    conn->tcp.data = conn;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&conn->tcp), 0);
    uv_read_start((uv_stream_t *)&conn->tcp, tls_alloc, tls_on_read);
}

/* Speaks every version of TLS up to newest, with the weakest of ciphers too: what is refused, the
 * client refuses. */
static inline SSL_CTX *tls_context(const struct pair *pair, int newest)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0"), 1);
    assert_int_equal(SSL_CTX_set_min_proto_version(context, TLS1_VERSION), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, newest), 1);
    assert_int_equal(SSL_CTX_use_certificate(context, pair->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, pair->key), 1);
    return context;
}

static inline void tls_server_start(struct tls_server *server, uv_loop_t *loop,
                                    const struct pair *pair, int newest)
{
    struct sockaddr_in address;
    int len = sizeof(address);
    server->loop = loop;
    server->answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    server->context = tls_context(pair, newest);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(loop, &server->listener);
    server->listener.data = server;
    assert_int_equal(uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&server->listener, 16, tls_on_connection), 0);
    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len);
    server->port = ntohs(address.sin_port);
}

/* Run the loop once more after it. */
static inline void tls_server_stop(struct tls_server *server)
{
    for (struct tls_conn *conn = server->conns; conn; conn = conn->next)
        tls_cut(conn);
    uv_close((uv_handle_t *)&server->listener, NULL);
    SSL_CTX_free(server->context);
}

#endif
