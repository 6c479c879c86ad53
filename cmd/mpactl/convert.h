/* mpactl convert: HorizontalPodAutoscalers, VerticalPodAutoscalers and ScaledObjects as MPAs. */
#ifndef FAASRL_MPACTL_CONVERT_H
#define FAASRL_MPACTL_CONVERT_H

#include "api/api.h"

#define CONVERT_KEDA           "autoscaling.keda.sh/" /* annotations of KEDA's */
#define CONVERT_NO_COUNTERPART "has no counterpart in an MPA: left out"

/* An autoscaler as it was read. What has been carried over is taken out of object, so that what is
 * left at the end is what was not. */
struct convert_source {
    const char *file;
    const char *text; /* of the file */
    size_t len, document;
    char *prefix; /* of all paths: "items[2]." in a list */
    json_t *object;
    char *kind, *name, *namespace_;
};

/* What becomes of all autoscalers of one target. */
struct convert_mpa {
    char *name, *namespace_;
    json_t *target; /* scaleTargetRef */
    json_t *labels, *annotations;
    json_t *metrics, *behavior, *containers; /* behavior NULL: none is stated */
    json_t *controlled, *boost;              /* NULL: not stated */
    int64_t min_replicas, max_replicas;      /* -1: not stated */
    const char *mode;                        /* of the VPA; NULL: there is none */
    bool horizontal, vertical;               /* what of it was scaled before */
    char **notes;
    size_t note_count;
};

/* --- reading fields (convert_fields.c) -------------------------------------------------------- */
/* Says "file:line: path: message", for stderr and as a comment above the MPA. */
void convert_note(struct convert_mpa *mpa, const struct convert_source *source, const char *path,
                  const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Names file, line, autoscaler and field; is -1. */
int convert_fail(const struct convert_source *source, const char *path, struct error *err,
                 const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Takes a field out of its object, a new reference; NULL when it is absent or null. */
json_t *convert_take(json_t *object, const char *key);
/* Fails where the field of the object, which is at the path, is there and no text. */
int convert_text(const struct convert_source *source, const json_t *object, const char *path,
                 const char *key, struct error *err);
/* The object or list at a path like "spec.updatePolicy"; NULL when there is none. */
int convert_object(const struct convert_source *source, const char *path, json_t **out,
                   struct error *err);
int convert_list(const struct convert_source *source, const char *path, json_t **out,
                 struct error *err);
/* Takes a whole number; *out stays as it is when the field is absent. */
int convert_integer(const struct convert_source *source, json_t *object, const char *path,
                    int64_t *out, struct error *err);
/* A note for all that is left of the source, one for each subtree that a sentence is known for. */
void convert_note_rest(struct convert_mpa *mpa, const struct convert_source *source);

/* --- the kinds (convert_hpa.c, convert_vpa.c, convert_keda.c) --------------------------------- */
int convert_hpa(struct convert_mpa *mpa, const struct convert_source *source, struct error *err);
int convert_vpa(struct convert_mpa *mpa, const struct convert_source *source, struct error *err);
int convert_keda(struct convert_mpa *mpa, const struct convert_source *source, struct error *err);
/* What HPA and ScaledObject have in common. */
void convert_bounds(struct convert_mpa *mpa, const struct convert_source *source,
                    const char *min_path, int64_t min, const char *max_path, int64_t max);
void convert_add_metric(struct convert_mpa *mpa, json_t *metric); /* takes the reference */
int convert_behavior(struct convert_mpa *mpa, const struct convert_source *source, const char *path,
                     struct error *err);

#endif
