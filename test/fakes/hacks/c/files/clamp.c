#include "clamp.h"

int clamp(int value, int low, int high) {
  if (value < low) return low;
  return value > high ? low : value;
}
