// Face of distributed: processes that train together, on the collectives of libtorch (c10d, Gloo).
#pragma once

#include "lissome/distributed/group.h"
#include "lissome/distributed/group_place.h"
