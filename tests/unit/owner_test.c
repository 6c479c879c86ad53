/* The controller and Knative's Revisions of our class: whose template gets the class, and who is
 * woken. And those whose bounds are set back. */
#include "controller/controller.h"
#include "kube_fake.h"

struct object {
    const char *plural; /* "/services?" in a path */
    const char *text;
};

struct scene {
    struct fake fake;
    struct prom *prom;
    struct observe *observe;
    struct controller *controller;
    struct object objects[8];
    const char *held; /* by the activator; NULL: it cannot tell */
    int readings;     /* of it */
    char log[32768];  /* of what is written */
    bool refuse;
    const char *config; /* of Knative's autoscaler; NULL: it may not be read */
};

#define META(name, more)                                                                           \
    "'metadata':{'name':'" name "','namespace':'s','uid':'u-" name "','resourceVersion':'9',"      \
    "'generation':1" more "}"
#define BY(owner) ",'ownerReferences':[{'kind':'X','name':'x','uid':'" owner "','controller':true}]"
#define MPA_ON(kind, target, policy, within)                                                       \
    "{'apiVersion':'autoscaling.faasrl.io/v1alpha1','kind':'MultidimPodAutoscaler'," META(         \
        "m", "") ",'spec':{'scaleTargetRef':{'apiVersion':'serving.knative.dev/"                   \
                 "v1','kind':'" kind "','name':'" target                                           \
                 "'},'goals':{'latency':{'target':'300ms'}},'constraints':{'global':{" within      \
                 ",'maxReplicas':5}},'policy':{" policy "}}}"
#define MPA_WITHIN(target, policy, within) MPA_ON("Service", target, policy, within)
#define MPA(target, policy)                MPA_WITHIN(target, policy, "'minReplicas':2")
#define SPLIT_SERVICE(name, mark, annotations, traffic)                                            \
    "{" META(name, ",'annotations':{" mark                                                         \
                   "}") ",'spec':{'template':{'metadata':{'annotations':{" annotations             \
                        "}}}},'status':{'latestReadyRevisionName':'" name                          \
                        "-1','traffic':[" traffic "]}}"
#define SERVICE(name, mark, annotations) SPLIT_SERVICE(name, mark, annotations, "")
#define SHARE(revision, percent)         "{'revisionName':'" revision "','percent':" percent "}"
#define REVISION(name)                   "{" META(name, "") "}"
#define LABELS(service)                  ",'labels':{'serving.knative.dev/service':'" service "'}"
#define SCALER(name, annotations, status)                                                          \
    "{" META(name,                                                                                 \
             BY("u-" name)                                                                         \
                 LABELS("f") ",'annotations':{" annotations                                        \
                             "}") ",'spec':{'protocolType':'http1','scaleTargetRef':{'kind':'"     \
                                  "Deployment','name':'d-" name "'}},"                             \
                                  "'status':{" status "}}"
#define LABELLED_SCALER(name, service, annotations)                                                \
    "{" META(name, LABELS(service) ",'annotations':{" annotations "}") "}"
#define OURS  "'autoscaling.knative.dev/class':'mpa.faasrl.io'"
#define OWNED "'autoscaling.faasrl.io/owned':'true'"
#define ASLEEP                                                                                     \
    "'desiredScale':0,'actualScale':0,'conditions':[{'type':'Active','status':'False',"            \
    "'lastTransitionTime':'2026-01-01T00:00:00Z'},{'type':'ScaleTargetInitialized','status':"      \
    "'True'}]"
#define DEPLOYMENT(revision) "{" META("d-" revision, BY("u-" revision)) ",'spec':{'replicas':0}}"
#define CLASS_PATCH(mark, class)                                                                   \
    "{'metadata':{'annotations':{'autoscaling.faasrl.io/owned':" mark "}},'spec':{'template':"     \
    "{'metadata':{'annotations':" class "}}}}"

static void reply_list(const struct scene *w, const struct fake_request *r)
{
    const char *items = "";
    for (size_t i = 0; i < ARRAY_LEN(w->objects); i++)
        if (w->objects[i].plural && strstr(r->target, w->objects[i].plural))
            items = w->objects[i].text;
    cleanup_free char *text = xasprintf("{'metadata':{'resourceVersion':'7'},'items':[%s]}", items);
    cleanup_free char *body = fake_quoted(text);
    fake_reply(r->conn, 200, "", body);
}

static void reply_activators(const struct scene *w, const struct fake_request *r)
{
    cleanup_free char *text = xasprintf(
        "{'metadata':{'resourceVersion':'7'},'items':[{" META(
            "activator", "") ",'spec':{"
                             "'containers':[{'ports':[{'name':'metrics','containerPort':%d}]}]},'"
                             "status':{'podIP':"
                             "'127.0.0.1','conditions':[{'type':'Ready','status':'True'}]}}]}",
        w->fake.port);
    cleanup_free char *body = fake_quoted(text);
    fake_reply(r->conn, 200, "", body);
}

#define CONFIG "/api/v1/namespaces/knative-serving/configmaps/config-autoscaler"

static void on_request(void *arg, const struct fake_request *r)
{
    struct scene *w = arg;
    size_t at = strlen(w->log);
    if (strstr(r->target, "watch=1")) {
        fake_stream_begin(r->conn);
    } else if (strstr(r->target, "/query")) {
        fake_reply(r->conn, 200, "",
                   "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
    } else if (strcmp(r->target, "/metrics") == 0) {
        w->readings++;
        fake_reply(r->conn, w->held ? 200 : 500, "", w->held ? w->held : "");
    } else if (strstr(r->target, "/knative-serving/pods")) {
        reply_activators(w, r);
    } else if (strcmp(r->target, CONFIG) == 0) {
        cleanup_free char *body = fake_quoted(w->config ? w->config : "{'message':'no right'}");
        fake_reply(r->conn, w->config ? 200 : 403, "", body);
    } else if (strcmp(r->method, "GET") == 0) {
        reply_list(w, r);
    } else {
        snprintf(w->log + at, sizeof(w->log) - at, "%s %s %s\n", r->method, r->target, r->body);
        fake_reply(r->conn, w->refuse ? 403 : 200, "", "{\"message\":\"no right\"}");
    }
}

static bool wrote(const struct scene *w, const char *where, const char *what)
{
    cleanup_free char *log = xstrdup(w->log), *body = fake_quoted(what);
    char *rest = log;
    for (const char *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, where) && strstr(line, body))
            return true;
    return false;
}

/* Words with quotes in them, which wrote() would take for those of JSON. */
static bool told(const struct scene *w, const char *what)
{
    return strstr(w->log, what) && wrote(w, "/multidimpodautoscalers/m/status", "");
}

static void start(struct scene *w)
{
    struct error err = {0};
    cleanup_free char *url = xasprintf("http://127.0.0.1:%d", w->fake.port);
    w->prom = prom_new(&w->fake.loop, w->fake.http, &(struct prom_config){.url = url}, &err);
    w->observe = observe_new(w->prom, &(struct observe_options){.window_s = 60}, &err);
    assert_non_null(w->observe);
    w->controller =
        controller_new(&w->fake.loop, w->fake.kube, w->observe,
                       &(struct controller_options){
                           .interval_s = 1, .status_interval_s = 15, .http = w->fake.http});
}

static int setup(void **state)
{
    struct scene *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR + 1, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->held = "up 1\n";
    w->config = "{}";
    fake_start(&w->fake, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct scene *w = *state;
    clock_use_system();
    controller_free(w->controller);
    observe_free(w->observe);
    prom_free(w->prom);
    fake_stop(&w->fake);
    free(w);
    return 0;
}

#define SERVICES_F "/namespaces/s/services/f"

#define KPA "'autoscaling.knative.dev/class':'kpa.autoscaling.knative.dev'"

static void a_template_without_a_class_gets_ours_if_the_mpa_says_own(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "'knative':'Own'")};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", "", "")};
    start(w);
    fake_run_until(&w->fake, wrote(w, SERVICES_F, CLASS_PATCH("'true'", "{" OURS "}")));
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'Owned'"));
}

static void what_an_author_has_set_stays(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "'knative':'Own'")};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", KPA)};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", "", "'desiredScale':1")};
    start(w);
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 2500);
    assert_false(wrote(w, SERVICES_F, ""));
}

#define CANNOT_OWN(why)                                                                            \
    "spec.policy.knative is Own, but " why "; until then Knative's own autoscaler is steered"
#define CONFIGURATION(more, annotations)                                                           \
    "{" META("f", more) ",'spec':{'template':{'metadata':{'annotations':{" annotations             \
                        "}}}},'status':{'latestReadyRevisionName':'f-1'}}"

static void own(struct scene *w, const char *mpa)
{
    w->objects[0] = (struct object){"multidimpodautoscalers", mpa};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", "", "'desiredScale':1")};
}

/* It would be undone: the Service says what is in it. */
static void what_a_service_has_made_cannot_be_owned(void **state)
{
    struct scene *w = *state;
    own(w, MPA_ON("Configuration", "f", "'knative':'Own'", "'minReplicas':1"));
    w->objects[4] = (struct object){"/configurations?", CONFIGURATION(BY("u-s"), "")};
    start(w);
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'CannotOwn'"));
    fake_run_until(&w->fake, told(w, CANNOT_OWN("a Service has made Configuration f, and says its "
                                                "class: name that one")));
    assert_false(wrote(w, "/configurations/f", ""));
}

static void a_configuration_of_its_own_can_be_owned(void **state)
{
    struct scene *w = *state;
    own(w, MPA_ON("Configuration", "f", "'knative':'Own'", "'minReplicas':1"));
    w->objects[4] = (struct object){"/configurations?", CONFIGURATION("", "")};
    start(w);
    fake_run_until(&w->fake,
                   wrote(w, "/namespaces/s/configurations/f", CLASS_PATCH("'true'", "{" OURS "}")));
    assert_false(wrote(w, "", "'reason':'CannotOwn'"));
}

static void a_revision_keeps_its_class(void **state)
{
    struct scene *w = *state;
    own(w, MPA_ON("Revision", "f-1", "'knative':'Own'", "'minReplicas':1"));
    start(w);
    fake_run_until(&w->fake, told(w, CANNOT_OWN("a Revision keeps the class that it was made with: "
                                                "name the Service or Configuration of f-1")));
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'CannotOwn'"));
}

static void an_authors_class_is_told(void **state)
{
    struct scene *w = *state;
    own(w, MPA("f", "'knative':'Own'"));
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", KPA)};
    start(w);
    fake_run_until(&w->fake, told(w, CANNOT_OWN("the template of Service f has class "
                                                "kpa.autoscaling.knative.dev: take its annotation "
                                                "autoscaling.knative.dev/class away")));
}

static void a_class_that_is_refused_is_told(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "'knative':'Own'")};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", "", "")};
    w->refuse = true;
    start(w);
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'CannotOwn'"));
    assert_true(wrote(w, "/events", "no right"));
}

/* One of ours whose MPA names another target, or has changed its mind, is as it was again. */
static void a_class_of_ours_goes_with_its_mpa(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "'knative':'Steer'")};
    w->objects[1] = (struct object){
        "/services?", SERVICE("f", OWNED, OURS) "," SERVICE("g", OWNED, OURS ",'a':'b'")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", "", "'desiredScale':1")};
    start(w);
    fake_run_until(&w->fake, wrote(w, SERVICES_F, CLASS_PATCH("null", "null")));
    fake_run_until(&w->fake, wrote(w, "/namespaces/s/services/g",
                                   CLASS_PATCH("null", "{'autoscaling.knative.dev/class':null}")));
}

static void sleep_in(struct scene *w)
{
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "'knative':'Own'")};
    w->objects[1] = (struct object){"/services?", SERVICE("f", OWNED, OURS)};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", OURS, ASLEEP)};
    w->objects[4] = (struct object){"/deployments?", DEPLOYMENT("f-1")};
}

#define HOLDS(revision)                                                                            \
    "kn_revision_request_concurrency{k8s_namespace_name=\"s\",kn_revision_name=\"" revision        \
    "\"} 1\n"

static void who_sleeps_wakes_for_a_request_to_the_least(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    start(w);
    fake_run_until(&w->fake, wrote(w, "/serverlessservices", "'mode':'Proxy'"));
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 1500);
    assert_false(wrote(w, "/deployments/d-f-1/scale", ""));
    w->held = HOLDS("f-1");
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-1/status", "'desiredScale':2"));
}

/* No template is theirs, or it is of our class already. */
static void those_of_our_class_wake_by_any_name(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->objects[0] = (struct object){
        "multidimpodautoscalers", MPA_ON("Revision", "f-1", "'knative':'Own'", "'minReplicas':2")};
    w->held = HOLDS("f-1");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
    assert_false(wrote(w, "", "'reason':'CannotOwn'"));
}

static void a_configurations_wake_likewise(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->objects[0] =
        (struct object){"multidimpodautoscalers",
                        MPA_ON("Configuration", "f", "'knative':'Own'", "'minReplicas':2")};
    w->objects[5] = (struct object){"/configurations?", CONFIGURATION(BY("u-s"), OURS)};
    w->held = HOLDS("f-1");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
    assert_false(wrote(w, "", "'reason':'CannotOwn'"));
}

/* The least is five replicas: three, one and one, as each needs one to serve. One without any
 * request sleeps on, whatever its share. */
static void each_revision_of_a_split_wakes_to_its_share(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->objects[0] = (struct object){"multidimpodautoscalers",
                                    MPA_WITHIN("f", "'knative':'Own'", "'minReplicas':5")};
    w->objects[1] = (struct object){
        "/services?",
        SPLIT_SERVICE("f", OWNED, OURS,
                      SHARE("f-1", "75") "," SHARE("f-2", "20") "," SHARE("f-3", "5"))};
    w->objects[2] =
        (struct object){"/revisions?", REVISION("f-1") "," REVISION("f-2") "," REVISION("f-3")};
    w->objects[3] = (struct object){"/podautoscalers?",
                                    SCALER("f-1", OURS, ASLEEP) "," SCALER(
                                        "f-2", OURS, ASLEEP) "," SCALER("f-3", OURS, ASLEEP)};
    w->objects[4] = (struct object){"/deployments?",
                                    DEPLOYMENT("f-1") "," DEPLOYMENT("f-2") "," DEPLOYMENT("f-3")};
    w->held = HOLDS("f-1") HOLDS("f-2");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':3}}"));
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-2/scale", "{'spec':{'replicas':1}}"));
    assert_false(wrote(w, "/deployments/d-f-3/scale", ""));
}

/* Nor does anybody go on sleeping whom nobody would hear. */
static void that_activators_cannot_be_read_is_told(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->held = NULL;
    start(w);
    fake_run_until(&w->fake, w->readings > 0);
    assert_false(wrote(w, "/events", "'reason':'CannotSleep'"));
    clock_set(clock_mono_ms() + 16000, clock_wall_ms());
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'CannotSleep'"));
    assert_true(wrote(w, "/events", "HTTP status 500"));
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
}

/* By the defaults of the cluster, which are read before anything is written. */
static void who_may_not_sleep_is_woken(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->config = "{'data':{'enable-scale-to-zero':'false'}}";
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
    assert_false(wrote(w, "/podautoscalers/f-1/status", "'desiredScale':0"));
}

/* An older role does not let the controller see them. */
static void defaults_that_cannot_be_read_are_knatives(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->config = NULL;
    w->held = HOLDS("f-1");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':2}}"));
}

static void one_without_an_mpa_wakes_too(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("g", "")};
    w->held = HOLDS("f-1");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':1}}"));
}

#define STEERED "'autoscaling.faasrl.io/steered':'true'"
#define HANDED_BACK                                                                                \
    "{'metadata':{'annotations':{'autoscaling.knative.dev/min-scale':null,"                        \
    "'autoscaling.knative.dev/max-scale':null,'autoscaling.faasrl.io/steered':null}}}"

/* No MPA is there any more, nor was one when this controller began. */
static void bounds_that_nobody_holds_are_handed_back(void **state)
{
    struct scene *w = *state;
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", STEERED, "'desiredScale':1")};
    start(w);
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-1", HANDED_BACK));
}

static void only_those_that_nobody_holds_are(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", MPA("f", "")};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "") "," SERVICE("g", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1") "," REVISION("g-1")};
    w->objects[3] = (struct object){
        "/podautoscalers?",
        LABELLED_SCALER("f-1", "f", STEERED) "," LABELLED_SCALER("g-1", "g", STEERED)};
    start(w);
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/g-1", HANDED_BACK));
    assert_false(wrote(w, "/podautoscalers/f-1", HANDED_BACK));
}

static void who_sleeps_wakes_where_there_is_no_mpa_at_all(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->objects[0] = (struct object){0};
    w->held = HOLDS("f-1");
    start(w);
    fake_run_until(&w->fake, wrote(w, "/deployments/d-f-1/scale", "{'spec':{'replicas':1}}"));
    fake_run_until(&w->fake, wrote(w, SERVICES_F, CLASS_PATCH("null", "null")));
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

#define SOMEBODY_SAYS_TWO                                                                          \
    MPA_WITHIN("f",                                                                                \
               "},'recommenders':[{'name':'somebody'}]},'status':{'desiredReplicas':2,"            \
               "'recommendation':{'containerRecommendations':[]",                                  \
               "'minReplicas':2,'behavior':{'scaleDown':{'stabilizationWindowSeconds':0}}")

/* This server keeps nothing of what it is told, as if bounds were set back at once. */
static void bounds_that_are_set_back_are_told(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", SOMEBODY_SAYS_TWO};
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1")};
    w->objects[3] =
        (struct object){"/podautoscalers?", SCALER("f-1", "'autoscaling.faasrl.io/steered':'true'",
                                                   "'desiredScale':1,'actualScale':1")};
    start(w);
    fake_run_until(&w->fake,
                   wrote(w, "/podautoscalers/f-1", "'autoscaling.knative.dev/min-scale':'2'"));
    assert_false(wrote(w, "/multidimpodautoscalers/m/status", "'reason':'BoundsUndone'"));
    fake_run_until(&w->fake,
                   wrote(w, "/multidimpodautoscalers/m/status", "'reason':'BoundsUndone'"));
    fake_run_until(&w->fake, wrote(w, "/events", "'reason':'BoundsUndone'"));
    int told = times(w->log, "/events"), tried = times(w->log, "/podautoscalers/f-1");
    fake_run_until(&w->fake, times(w->log, "/podautoscalers/f-1") >= tried + 2);
    assert_int_equal(times(w->log, "/events"), told); /* of no more replicas that came of it */
}

#define HELD_SCALER(name, min, max)                                                                \
    SCALER(name,                                                                                   \
           STEERED ",'autoscaling.knative.dev/min-scale':'" min                                    \
                   "','autoscaling.knative.dev/max-scale':'" max "'",                              \
           "'desiredScale':1,'actualScale':1")

/* Two are decided, and come to three, as each Revision with traffic needs one. */
static void replicas_that_come_to_more_are_no_rescale_again(void **state)
{
    struct scene *w = *state;
    w->objects[0] = (struct object){"multidimpodautoscalers", SOMEBODY_SAYS_TWO};
    w->objects[1] = (struct object){
        "/services?",
        SPLIT_SERVICE("f", "", "",
                      SHARE("f-1", "75") "," SHARE("f-2", "20") "," SHARE("f-3", "5"))};
    w->objects[2] =
        (struct object){"/revisions?", REVISION("f-1") "," REVISION("f-2") "," REVISION("f-3")};
    w->objects[3] =
        (struct object){"/podautoscalers?", HELD_SCALER("f-1", "1", "3") "," HELD_SCALER(
                                                "f-2", "1", "1") "," HELD_SCALER("f-3", "1", "1")};
    start(w);
    fake_run_until(&w->fake, wrote(w, "/multidimpodautoscalers/m/status", "'action':'None'"));
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 2500);
    assert_false(wrote(w, "/podautoscalers", ""));
    assert_false(wrote(w, "/events", "'reason':'SuccessfulRescale'"));
}

#define NAMED_MPA(name, created, mode, kind, target)                                               \
    "{'apiVersion':'autoscaling.faasrl.io/v1alpha1','kind':'MultidimPodAutoscaler'," META(         \
        name,                                                                                      \
        ",'creationTimestamp':'2026-01-01T00:00:0" created                                         \
        "Z'") ",'spec':{'scaleTargetRef':{'apiVersion':'serving.knative.dev/v1','kind':'" kind     \
              "','name':'" target                                                                  \
              "'},'goals':{'latency':{'target':'300ms'}},'constraints':{'global':{"                \
              "'maxReplicas':5}},'policy':{'updateMode':'" mode                                    \
              "'},'recommenders':[{'name':'somebody'}]},'status':{'desiredReplicas':2}}"
#define OF_SERVICE(name, created)  NAMED_MPA(name, created, "Auto", "Service", "f")
#define OF_REVISION(name, created) NAMED_MPA(name, created, "Auto", "Revision", "f-1")
#define STATUS_OF(name)            "/multidimpodautoscalers/" name "/status"
#define YIELDS(what, to, kind, of)                                                                 \
    what " and " kind " " of " have Revisions in common, and MultidimPodAutoscaler " to            \
         " scales the latter: delete that one, or this"

/* Revision f-1 of Configuration f of Service f, which gets no requests. */
static void overlap(struct scene *w, const char *mpas)
{
    w->objects[0] = (struct object){"multidimpodautoscalers", mpas};
    w->objects[1] = (struct object){"/services?", SPLIT_SERVICE("f", "", "", SHARE("f-2", "100"))};
    w->objects[2] = (struct object){"/revisions?", REVISION("f-1") "," REVISION("f-2")};
    w->objects[3] = (struct object){
        "/podautoscalers?",
        "{" META("f-1",
                 ",'labels':{'serving.knative.dev/service':'f',"
                 "'serving.knative.dev/configuration':'f'}") ",'status':{"
                                                             "'desiredScale':1}}," SCALER(
                                                                 "f-2", "", "'desiredScale':1")};
    w->objects[4] = (struct object){
        "/configurations?",
        "{" META("f", ",'ownerReferences':[{'kind':'Service','name':'f','uid':'u-f',"
                      "'controller':true}]") ",'spec':{'template':{}},'status':{"
                                             "'latestReadyRevisionName':'f-2'}}"};
}

static void a_revision_is_left_to_its_services_mpa(void **state)
{
    struct scene *w = *state;
    overlap(w, OF_SERVICE("a", "1") "," OF_REVISION("b", "2"));
    start(w);
    fake_run_until(&w->fake, wrote(w, STATUS_OF("b"), YIELDS("Revision f-1", "a", "Service", "f")));
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-2", "min-scale':'2'"));
    assert_false(wrote(w, "/podautoscalers/f-1", ""));
    assert_true(wrote(w, "/events", "'reason':'OwnedByAnother'"));
    assert_false(wrote(w, STATUS_OF("a"), "OwnedByAnother"));
}

static void a_service_is_left_to_an_older_mpa_of_its_revision(void **state)
{
    struct scene *w = *state;
    overlap(w, OF_REVISION("a", "1") "," OF_SERVICE("b", "2"));
    start(w);
    fake_run_until(&w->fake, wrote(w, STATUS_OF("b"), YIELDS("Service f", "a", "Revision", "f-1")));
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-1", "min-scale':'2'"));
    assert_false(wrote(w, "/podautoscalers/f-2", ""));
}

static void a_configuration_is_between_them(void **state)
{
    struct scene *w = *state;
    overlap(w, OF_REVISION("c", "3") "," OF_SERVICE("b", "2") "," NAMED_MPA("a", "1", "Auto",
                                                                            "Configuration", "f"));
    start(w);
    fake_run_until(&w->fake,
                   wrote(w, STATUS_OF("b"), YIELDS("Service f", "a", "Configuration", "f")));
    fake_run_until(&w->fake, wrote(w, STATUS_OF("c"), YIELDS("Revision f-1", "b", "Service", "f")));
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-2", "min-scale':'2'"));
}

static void an_older_mpa_in_mode_off_is_no_rival(void **state)
{
    struct scene *w = *state;
    overlap(w, NAMED_MPA("a", "1", "Off", "Revision", "f-1") "," OF_SERVICE("b", "2"));
    start(w);
    fake_run_until(&w->fake, wrote(w, "/podautoscalers/f-2", "min-scale':'2'"));
    fake_run_until(&w->fake, wrote(w, STATUS_OF("a"), YIELDS("Revision f-1", "b", "Service", "f")));
    assert_false(wrote(w, STATUS_OF("b"), "OwnedByAnother"));
}

/* Nothing that the Service's MPA has set is taken back. */
static void who_yielded_leaves_nothing_behind(void **state)
{
    struct scene *w = *state;
    overlap(w, OF_SERVICE("a", "1") "," OF_REVISION("b", "2"));
    w->objects[1] = (struct object){"/services?", SERVICE("f", "", "")};
    w->objects[3] = (struct object){"/podautoscalers?", SCALER("f-1", STEERED, "'desiredScale':1")};
    start(w);
    fake_run_until(&w->fake, wrote(w, STATUS_OF("b"), "OwnedByAnother"));
    cleanup_free char *text = fake_quoted("{'metadata':{'name':'b','namespace':'s'}}");
    cleanup_json json_t *gone = json_loads(text, 0, NULL);
    controller_mpa(w->controller, gone, true);
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 1500);
    assert_false(wrote(w, "/podautoscalers/f-1", HANDED_BACK));
}

static void a_deployment_of_a_revision_is_left_alone(void **state)
{
    struct scene *w = *state;
    overlap(w,
            "{'apiVersion':'autoscaling.faasrl.io/v1alpha1','kind':'MultidimPodAutoscaler'," META(
                "m", "") ",'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment',"
                         "'name':'d'},'goals':{'latency':{'target':'300ms'}},'constraints':{'"
                         "global':{'maxReplicas':5}},"
                         "'recommenders':[{'name':'somebody'}]}}");
    w->objects[5] = (struct object){
        "/deployments?",
        "{" META("d", ",'ownerReferences':[{'kind':'Revision','name':'f-1','uid':'u-f-1',"
                      "'controller':true}]") ",'spec':{'replicas':1}}"};
    start(w);
    fake_run_until(&w->fake,
                   wrote(w, STATUS_OF("m"),
                         "Deployment d belongs to Revision f-1, which says how many replicas it "
                         "has: name its Knative Service"));
    assert_false(wrote(w, "/deployments/d", ""));
}

static void a_refusal_is_an_event(void **state)
{
    struct scene *w = *state;
    sleep_in(w);
    w->refuse = true;
    start(w);
    fake_run_until(&w->fake, wrote(w, "/events", "no right"));
    assert_true(wrote(w, "/events", "'reason':'FailedRescale'"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_template_without_a_class_gets_ours_if_the_mpa_says_own),
        TEST(what_an_author_has_set_stays),
        TEST(what_a_service_has_made_cannot_be_owned),
        TEST(a_configuration_of_its_own_can_be_owned),
        TEST(a_revision_keeps_its_class),
        TEST(an_authors_class_is_told),
        TEST(those_of_our_class_wake_by_any_name),
        TEST(a_configurations_wake_likewise),
        TEST(a_class_that_is_refused_is_told),
        TEST(a_class_of_ours_goes_with_its_mpa),
        TEST(who_sleeps_wakes_for_a_request_to_the_least),
        TEST(each_revision_of_a_split_wakes_to_its_share),
        TEST(that_activators_cannot_be_read_is_told),
        TEST(who_may_not_sleep_is_woken),
        TEST(defaults_that_cannot_be_read_are_knatives),
        TEST(one_without_an_mpa_wakes_too),
        TEST(bounds_that_nobody_holds_are_handed_back),
        TEST(only_those_that_nobody_holds_are),
        TEST(who_sleeps_wakes_where_there_is_no_mpa_at_all),
        TEST(bounds_that_are_set_back_are_told),
        TEST(replicas_that_come_to_more_are_no_rescale_again),
        TEST(a_revision_is_left_to_its_services_mpa),
        TEST(a_service_is_left_to_an_older_mpa_of_its_revision),
        TEST(a_configuration_is_between_them),
        TEST(an_older_mpa_in_mode_off_is_no_rival),
        TEST(who_yielded_leaves_nothing_behind),
        TEST(a_deployment_of_a_revision_is_left_alone),
        TEST(a_refusal_is_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
