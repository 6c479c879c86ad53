/* Networks for others: ONNX, as read by onnxruntime, PyTorch, a browser, … */
#ifndef FAASRL_RL_ONNX_H
#define FAASRL_RL_ONNX_H

#include "rl/checkpoint.h"

/* One network of a checkpoint: "observations" (batch, inputs) → "outputs" (batch, outputs), as
 * rl_net_forward has it. chances: besides, for an actor, how likely each option is where all are
 * legal, as HEAD_chances (batch, options) of each head. The metadata tell algorithm, network,
 * features, globals, actions and the facts. free() the result. */
char *rl_onnx_encode(const struct rl_checkpoint *c, const struct rl_saved_net *net, bool chances,
                     size_t *len, struct error *err);

#endif
