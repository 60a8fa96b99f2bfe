// Joins the steps of batch norm with what lies around them. On plans as PlanBuilder makes them, before
// fuse_elementwise_steps():
//   channel_affine -> add -> relu      becomes one channel_affine that adds and activates on the way out
//   relu's gradient -> batch norm's    the gradient's steps read the mask themselves, where nothing else needs it; the
//                                      mask of relu(batch_norm(x)) they make of x, which they read anyway
//   max pooling's gradient -> ...      gathered by the gradient's steps of the smaller one, which is as large as x else
#pragma once

#include "lissome/runtime.h"

namespace lissome {

void fuse_channel_steps(Plan& plan);

}  // namespace lissome
