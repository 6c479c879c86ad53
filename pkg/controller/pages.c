/* What is served: /metrics for Prometheus, /healthz and /readyz for the kubelet, and the dashboard.
 */
#include "entry.h"
#include "serve.h"

#include <stdio.h>
#include <string.h>

PRINTF_LIKE(3, 4)
static void say(struct serve_answer *out, unsigned status, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    out->status = status;
    buf_clear(&out->body);
    (void)!buf_printf(&out->body, "%s\n", text);
}

static void answer_metrics(void *arg, struct serve_answer *out)
{
    struct controller *c = arg;
    out->content_type = METRICS_CONTENT_TYPE;
    if (metrics_write(c->report.metrics, &out->body) < 0) {
        out->content_type = "text/plain; charset=utf-8";
        say(out, 500, "more metrics than fit in an answer: try --per-mpa-metrics=false");
    }
}

/* That there is an answer at all tells that the loop turns. */
static void answer_health(void *arg, struct serve_answer *out)
{
    const struct controller *c = arg;
    double under_way_s =
        c->report.pass_began_ms ? (double)(clock_mono_ms() - c->report.pass_began_ms) / 1000 : 0;
    if (c->leading && under_way_s > c->options.pass_limit_s)
        say(out, 500, "a pass has been under way for %.0f s", under_way_s);
    else
        say(out, 200, "ok");
}

static void answer_ready(void *arg, struct serve_answer *out)
{
    const struct controller *c = arg;
    const struct live *live = c->live;
    char awaited[400] = "";
    for (size_t i = 0; live && i < live->scope_count; i++) {
        if (live->scopes[i].listed)
            continue;
        const char *why = live->scopes[i].trouble;
        say(out, 503, "not synced: " API_PLURAL "%s%s", why ? ": " : "", why ? why : "");
        return;
    }
    if (live)
        kube_cache_awaits(live->cache, awaited, sizeof(awaited));
    if (*awaited)
        say(out, 503, "not synced: %s", awaited);
    else
        say(out, 200, "ok");
}

/* --- serving --------------------------------------------------------------------------------- */
int controller_serve(struct controller *c, uv_loop_t *loop, const char *listen, struct error *err)
{
    static const struct serve_route routes[] = {{.path = "/metrics", .answer = answer_metrics},
                                                {.path = "/healthz", .answer = answer_health},
                                                {.path = "/readyz", .answer = answer_ready}};
    size_t count = ARRAY_LEN(routes);
    memcpy(c->routes, routes, sizeof(routes));
    if (c->timeline) {
        memcpy(c->routes + count, dashboard_routes, sizeof(dashboard_routes));
        count += DASHBOARD_ROUTES;
        c->dashboard = dashboard_new(c, loop);
    }
    c->serve =
        serve_start(loop,
                    &(struct serve_options){
                        .listen = listen, .routes = c->routes, .route_count = count, .arg = c},
                    err);
    if (!c->serve) {
        dashboard_free(c->dashboard);
        c->dashboard = NULL;
    }
    return c->serve ? 0 : -1;
}

int controller_port(const struct controller *c)
{
    return serve_port(c->serve);
}
