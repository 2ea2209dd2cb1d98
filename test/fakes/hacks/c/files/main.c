#include <stdio.h>
#include <stdlib.h>

#include "clamp.h"

int main(int count, char **args) {
  if (count != 4) return 2;
  printf("%d\n", clamp(atoi(args[1]), atoi(args[2]), atoi(args[3])));
  return 0;
}
