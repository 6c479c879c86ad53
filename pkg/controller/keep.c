/* Policies that were found for single MPAs are kept in ConfigMaps of our own namespace, one each,
 * so that no right to read other people's is needed. */
#include "entry.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "rl/checkpoint.h"

#define NAME_BYTES 16 /* of the hash of the MPA's name: a ConfigMap's own may not be as long */
#define KEY        "policy"
#define OF         API_GROUP "/mpa"
#define UID        API_GROUP "/uid"
#define GENERATION API_GROUP "/generation"
#define SHA256     API_GROUP "/sha256"

static char *name_of(const struct api_mpa *mpa)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    char text[2 * NAME_BYTES + 1];
    cleanup_free char *key = xasprintf("%s/%s", mpa->namespace_, mpa->name);
    EVP_Digest(key, strlen(key), hash, NULL, EVP_sha256(), NULL);
    for (size_t i = 0; i < NAME_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    return xasprintf("mpa-policy-%s", text);
}

static char *path_of(const struct live *live, const struct api_mpa *mpa)
{
    cleanup_free char *name = name_of(mpa);
    return xasprintf("/api/v1/namespaces/%s/configmaps/%s",
                     live->controller->options.lease_namespace, name);
}

/* --- loading -----------------------------------------------------------------------------------
 */
struct load {
    char *uid;
    world_loaded on_done;
    void *arg;
};

static const char *annotation(const json_t *object, const char *name)
{
    return json_str(json_path(object, "metadata", "annotations", name, NULL));
}

/* What is kept of another MPA that had the name is none of this one's. */
static int read_policy(const struct load *load, const json_t *object, struct world_policy *out,
                       char **bytes, struct error *err)
{
    struct rl_checkpoint checkpoint = {0};
    if (strcmp(annotation(object, UID), load->uid) != 0)
        return error_set(err, ERROR_NOT_FOUND, "it is of another MPA that had this name");
    *bytes = base64_decode(json_str(json_path(object, "binaryData", KEY, NULL)), &out->len);
    if (!*bytes)
        return error_set(err, ERROR_MALFORMED, "its binaryData." KEY " is not base64");
    if (rl_checkpoint_decode(&checkpoint, *bytes, out->len, err) < 0)
        return -1;
    bool same = strcmp(checkpoint.sha256, annotation(object, SHA256)) == 0;
    rl_checkpoint_clear(&checkpoint);
    if (!same)
        return error_set(err, ERROR_MALFORMED, "its content is not that of annotation " SHA256);
    out->bytes = *bytes;
    out->generation = strtoll(annotation(object, GENERATION), NULL, 10);
    return 0;
}

static void on_loaded(void *arg, const struct kube_response *response)
{
    struct load *load = arg;
    struct world_policy policy = {0};
    struct error err = response->error;
    cleanup_free char *bytes = NULL;
    if (response->status == 404)
        err.code = ERROR_NOT_FOUND;
    bool failed = err.code || read_policy(load, response->json, &policy, &bytes, &err) < 0;
    load->on_done(load->arg, failed ? NULL : &policy, failed ? &err : NULL);
    free(load->uid);
    free(load);
}

void keep_load(void *self, const struct api_mpa *mpa, world_loaded on_done, void *arg)
{
    const struct live *live = self;
    cleanup_free char *path = path_of(live, mpa);
    struct load *load = xcalloc(1, sizeof(*load));
    *load = (struct load){.uid = xstrdup(mpa->uid), .on_done = on_done, .arg = arg};
    kube_send(live->kube, &(struct kube_request){.path = path, .on_done = on_loaded, .arg = load});
}

/* --- saving ------------------------------------------------------------------------------------
 */
static json_t *config_map(const struct live *live, const struct api_mpa *mpa,
                          const struct world_policy *policy, const char *sha256)
{
    cleanup_free char *name = name_of(mpa), *of = xasprintf("%s/%s", mpa->namespace_, mpa->name),
                      *generation = xasprintf("%lld", (long long)policy->generation),
                      *text = base64_encode(policy->bytes, policy->len);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s}}, s:{s:s}}",
                     "apiVersion", "v1", "kind", "ConfigMap", "metadata", "name", name, "namespace",
                     live->controller->options.lease_namespace, "labels",
                     "app.kubernetes.io/managed-by", "faasrl-mpa", "app.kubernetes.io/component",
                     "policy", "annotations", OF, of, UID, mpa->uid, GENERATION, generation, SHA256,
                     sha256, "binaryData", KEY, text);
}

void keep_save(void *self, const struct api_mpa *mpa, const struct world_policy *policy,
               actuate_done on_done, void *arg)
{
    const struct live *live = self;
    struct rl_checkpoint checkpoint = {0};
    struct error err = {0};
    if (rl_checkpoint_decode(&checkpoint, policy->bytes, policy->len, &err) < 0) {
        on_done(arg, &err);
        return;
    }
    cleanup_free char *path = path_of(live, mpa);
    cleanup_json json_t *body = config_map(live, mpa, policy, checkpoint.sha256);
    rl_checkpoint_clear(&checkpoint);
    actuate_write(live->kube, KUBE_PATCH_APPLY, path, body, on_done, arg);
}

static void on_dropped(void *arg, const struct kube_response *response)
{
    (void)arg;
    if (response->error.code && response->error.code != ERROR_CANCELLED && response->status != 404)
        log_warn("a policy was not deleted", log_str("why", response->error.message));
}

void keep_drop(void *self, const struct api_mpa *mpa)
{
    const struct live *live = self;
    cleanup_free char *path = path_of(live, mpa);
    kube_send(live->kube,
              &(struct kube_request){.method = "DELETE", .path = path, .on_done = on_dropped});
}
