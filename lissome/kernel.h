// Face of kernel: the compute kernels that finished models run on. Plain functions over raw pointers, without torch;
// one file a kernel, one version an instruction set, all in one table.
#pragma once

#include "lissome/kernel/activation.h"
#include "lissome/kernel/attention.h"
#include "lissome/kernel/attention_bf16.h"
#include "lissome/kernel/conv_f32.h"
#include "lissome/kernel/depthwise_f32.h"
#include "lissome/kernel/elementwise.h"
#include "lissome/kernel/fold_columns.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/linear_bf16.h"
#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/linear_u8s8.h"
#include "lissome/kernel/move.h"
#include "lissome/kernel/normalize.h"
#include "lissome/kernel/normalize_bf16.h"
#include "lissome/kernel/peak.h"
#include "lissome/kernel/pool.h"
#include "lissome/kernel/recurrent.h"
#include "lissome/kernel/take.h"
#include "lissome/kernel/winograd_f32.h"
