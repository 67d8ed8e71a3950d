// Catch2 version 2 (Debian 12) or 3 (Ubuntu 24.04). Include it last: its CHECK takes the place of ours, which the
// headers of the project use.
#pragma once
#include "support/check.h"
#undef CHECK
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
