/* A network is a chain of Gemm and an activation each, both of them as old as ONNX itself. The
 * numbers of fields are those of onnx.proto. */
#include "rl/onnx.h"

#include <stdio.h>
#include <string.h>

#include "base/protobuf.h"

#define MAX_BYTES RL_CHECKPOINT_MAX_BYTES
enum { IR_VERSION = 8, OPSET = 13 }; /* of 2021: what reads newer ones reads these */
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, ATTRIBUTE_INT = 2 };
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_METADATA = 14 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_INT64 = 7, TENSOR_NAME = 8, TENSOR_BYTES = 9 };

/* --- parts of a graph ------------------------------------------------------------------------ */
/* (rows, columns), or (columns) where rows is 0. */
static void add_tensor(struct protobuf *graph, const char *name, const float *values, size_t rows,
                       size_t columns)
{
    cleanup_protobuf struct protobuf tensor = protobuf(MAX_BYTES);
    if (rows > 0)
        protobuf_number(&tensor, TENSOR_DIM, rows);
    protobuf_number(&tensor, TENSOR_DIM, columns);
    protobuf_number(&tensor, TENSOR_TYPE, TYPE_FLOAT);
    protobuf_text(&tensor, TENSOR_NAME, name);
    protobuf_floats(&tensor, TENSOR_BYTES, values, (rows > 0 ? rows : 1) * columns);
    protobuf_message(graph, GRAPH_TENSOR, &tensor);
}

static void add_sizes(struct protobuf *graph, const char *name, const size_t *sizes, size_t count)
{
    cleanup_protobuf struct protobuf tensor = protobuf(MAX_BYTES);
    protobuf_number(&tensor, TENSOR_DIM, count);
    protobuf_number(&tensor, TENSOR_TYPE, TYPE_INT64);
    for (size_t i = 0; i < count; i++)
        protobuf_number(&tensor, TENSOR_INT64, sizes[i]);
    protobuf_text(&tensor, TENSOR_NAME, name);
    protobuf_message(graph, GRAPH_TENSOR, &tensor);
}

/* (batch, columns) */
static void add_port(struct protobuf *graph, uint32_t field, const char *name, size_t columns)
{
    cleanup_protobuf struct protobuf info = protobuf(MAX_BYTES), type = protobuf(MAX_BYTES);
    cleanup_protobuf struct protobuf tensor = protobuf(MAX_BYTES), shape = protobuf(MAX_BYTES);
    cleanup_protobuf struct protobuf dim = protobuf(MAX_BYTES);
    protobuf_text(&dim, 2, "batch");
    protobuf_message(&shape, 1, &dim);
    protobuf_number(&dim, 1, columns);
    protobuf_message(&shape, 1, &dim);
    protobuf_number(&tensor, 1, TYPE_FLOAT);
    protobuf_message(&tensor, 2, &shape);
    protobuf_message(&type, 1, &tensor);
    protobuf_text(&info, 1, name);
    protobuf_message(&info, 2, &type);
    protobuf_message(graph, field, &info);
}

/* Names end with a NULL. axis: the second, for what works along the options of a row. */
static void add_node(struct protobuf *graph, const char *type, const char *const *inputs,
                     const char *const *outputs, bool axis)
{
    cleanup_protobuf struct protobuf node = protobuf(MAX_BYTES), attribute = protobuf(MAX_BYTES);
    for (; *inputs; inputs++)
        protobuf_text(&node, NODE_INPUT, *inputs);
    for (; *outputs; outputs++)
        protobuf_text(&node, NODE_OUTPUT, *outputs);
    protobuf_text(&node, NODE_TYPE, type);
    if (axis) {
        protobuf_text(&attribute, 1, "axis");
        protobuf_number(&attribute, 3, 1);
        protobuf_number(&attribute, 20, ATTRIBUTE_INT);
        protobuf_message(&node, NODE_ATTRIBUTE, &attribute);
    }
    protobuf_message(graph, GRAPH_NODE, &node);
}

/* --- the network ----------------------------------------------------------------------------- */
static void add_layer(struct protobuf *graph, const struct rl_net *net, size_t i)
{
    const struct rl_layer *l = &net->layers[i];
    bool last = i + 1 == net->layer_count;
    char weights[32], biases[32], sum[32], before[32], after[32];
    snprintf(weights, sizeof(weights), "weights_%zu", i + 1);
    snprintf(biases, sizeof(biases), "biases_%zu", i + 1);
    snprintf(sum, sizeof(sum), "sum_%zu", i + 1);
    snprintf(before, sizeof(before), "hidden_%zu", i);
    snprintf(after, sizeof(after), "hidden_%zu", i + 1);
    add_tensor(graph, weights, net->params + l->weights, l->in, l->out);
    add_tensor(graph, biases, net->params + l->biases, 0, l->out);
    add_node(graph, "Gemm",
             (const char *[]){i == 0 ? "observations" : before, weights, biases, NULL},
             (const char *[]){last ? "outputs" : sum, NULL}, false);
    if (!last)
        add_node(graph, net->shape.activation == RL_TANH ? "Tanh" : "Relu",
                 (const char *[]){sum, NULL}, (const char *[]){after, NULL}, false);
}

static void add_chances(struct protobuf *graph, const struct rl_interface *interface)
{
    const struct rl_heads *heads = &interface->heads;
    char parts[RL_MAX_HEADS][RL_MAX_NAME + 16], chances[RL_MAX_NAME + 16];
    const char *names[RL_MAX_HEADS + 1] = {NULL};
    for (size_t i = 0; i < heads->count; i++) {
        snprintf(parts[i], sizeof(parts[i]), "%s_outputs", interface->head_names.items[i]);
        names[i] = parts[i];
    }
    add_sizes(graph, "options", heads->options, heads->count);
    add_node(graph, "Split", (const char *[]){"outputs", "options", NULL}, names, true);
    for (size_t i = 0; i < heads->count; i++) {
        snprintf(chances, sizeof(chances), "%s_chances", interface->head_names.items[i]);
        add_node(graph, "Softmax", (const char *[]){names[i], NULL},
                 (const char *[]){chances, NULL}, true);
        add_port(graph, GRAPH_OUTPUT, chances, heads->options[i]);
    }
}

static void add_graph(struct protobuf *model, const struct rl_checkpoint *c,
                      const struct rl_saved_net *saved, bool chances)
{
    cleanup_protobuf struct protobuf graph = protobuf(MAX_BYTES);
    protobuf_text(&graph, GRAPH_NAME, saved->name);
    add_port(&graph, GRAPH_INPUT, "observations", saved->net.shape.inputs);
    add_port(&graph, GRAPH_OUTPUT, "outputs", saved->net.shape.outputs);
    for (size_t i = 0; i < saved->net.layer_count; i++)
        add_layer(&graph, &saved->net, i);
    if (chances)
        add_chances(&graph, &c->interface);
    protobuf_message(model, MODEL_GRAPH, &graph);
}

/* --- what goes along ------------------------------------------------------------------------- */
static void add_metadata(struct protobuf *model, const char *key, const char *value)
{
    cleanup_protobuf struct protobuf entry = protobuf(MAX_BYTES);
    protobuf_text(&entry, 1, key);
    protobuf_text(&entry, 2, value);
    protobuf_message(model, MODEL_METADATA, &entry);
}

/* "replicas 3, cpu 2" where there are numbers, else "a, b" */
static void add_names(struct protobuf *model, const char *key, const struct rl_names *names,
                      const size_t *numbers)
{
    cleanup_buf struct buf text;
    buf_init(&text, MAX_BYTES);
    if (names->count == 0)
        return;
    for (size_t i = 0; i < names->count && !model->full; i++) {
        model->full = buf_printf(&text, "%s%s", i ? ", " : "", names->items[i]) < 0;
        if (numbers && !model->full)
            model->full = buf_printf(&text, " %zu", numbers[i]) < 0;
    }
    add_metadata(model, key, buf_string(&text));
}

static void add_description(struct protobuf *model, const struct rl_checkpoint *c, const char *name)
{
    add_metadata(model, "algorithm", c->algorithm);
    add_metadata(model, "network", name);
    add_names(model, "features", &c->interface.features, NULL);
    add_names(model, "globals", &c->interface.globals, NULL);
    add_names(model, "actions", &c->interface.head_names, c->interface.heads.options);
    for (size_t i = 0; i < c->fact_count; i++)
        add_metadata(model, c->facts[i].key, c->facts[i].value);
}

char *rl_onnx_encode(const struct rl_checkpoint *c, const struct rl_saved_net *net, bool chances,
                     size_t *len, struct error *err)
{
    cleanup_protobuf struct protobuf model = protobuf(MAX_BYTES), opset = protobuf(MAX_BYTES);
    if (chances && net->net.shape.outputs != c->interface.heads.total) {
        error_set(err, ERROR_INVALID, "the network %s does not choose actions", net->name);
        return NULL;
    }
    protobuf_number(&model, MODEL_IR, IR_VERSION);
    protobuf_text(&model, MODEL_PRODUCER, "faasrl-mpa");
    add_graph(&model, c, net, chances);
    protobuf_number(&opset, 2, OPSET);
    protobuf_message(&model, MODEL_OPSET, &opset);
    add_description(&model, c, net->name);
    if (model.full) {
        error_set(err, ERROR_TOO_LARGE, "a network can have at most %zu bytes", MAX_BYTES);
        return NULL;
    }
    *len = model.bytes.len;
    return buf_take(&model.bytes);
}
