/* Weft trains neural networks in C, on the devices that a machine has. This header includes all others. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/base.h>
#include <weft/dtype.h>
#include <weft/tensor.h>
#include <weft/ops.h>
#include <weft/op.h>
#include <weft/profile.h>
#include <weft/nn.h>
#include <weft/recurrent.h>
#include <weft/optim.h>
#include <weft/process_group.h>
#include <weft/data.h>
#include <weft/loader.h>
#include <weft/fit.h>
#include <weft/metrics.h>
#include <weft/text.h>
#include <weft/chat.h>
#include <weft/chats.h>
#include <weft/preferences.h>
#include <weft/io.h>
#include <weft/gradcheck.h>
#include <weft/generate.h>
#include <weft/grammar.h>
#include <weft/run.h>
#include <weft/published.h>

#endif
