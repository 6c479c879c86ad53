/* What a request and its answer look like in HTTP. */
#include "kube/internal.h"

#include <string.h>

enum error_code kube_status_code(int status, bool told_to_wait)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_FORBIDDEN;
    case 404:
        return ERROR_NOT_FOUND;
    case 409:
        return ERROR_CONFLICT;
    case 410:
        return ERROR_GONE;
    case 429:
        return ERROR_BUSY;
    case 408:
    case 504:
        return ERROR_TIMEOUT;
    case 413:
        return ERROR_TOO_LARGE;
    default:
        if (status == 503 && told_to_wait)
            return ERROR_BUSY;
        return status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    }
}

const char *kube_content_type(enum kube_patch patch)
{
    switch (patch) {
    case KUBE_PATCH_MERGE:
        return "application/merge-patch+json";
    case KUBE_PATCH_STRATEGIC:
        return "application/strategic-merge-patch+json";
    case KUBE_PATCH_JSON:
        return "application/json-patch+json";
    case KUBE_PATCH_APPLY:
        return "application/apply-patch+yaml"; /* JSON is YAML */
    default:
        return "application/json";
    }
}

/* The methods are constants here, so that a call need not keep the caller's string. */
const char *kube_method(const struct kube_request *request)
{
    static const char *const known[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    if (!request->method)
        return request->patch ? "PATCH" : "GET";
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(request->method, known[i]) == 0)
            return known[i];
    return NULL;
}

char *kube_url(const char *server, const char *manager, const struct kube_request *r)
{
    const char *method = kube_method(r);
    if (!method || strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0)
        return xasprintf("%s%s", server, r->path);
    cleanup_free char *escaped = http_escape(manager);
    return xasprintf("%s%s%cfieldManager=%s%s", server, r->path, strchr(r->path, '?') ? '&' : '?',
                     escaped, r->patch == KUBE_PATCH_APPLY ? "&force=true" : "");
}
