#include "base/yaml/describe.h"
