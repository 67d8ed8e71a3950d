#include "ops/common.h"
