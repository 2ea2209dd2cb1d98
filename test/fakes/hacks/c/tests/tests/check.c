#include <stdio.h>
#include <stdlib.h>

#include "../clamp.h"

static int count, failed;

static void same(const char *name, int got, int wanted) {
  if (got != wanted) failed = 1;
  printf("%sok %d - %s\n", got == wanted ? "" : "not ", ++count, name);
}

int main(void) {
  same("above", clamp(5, 1, 3), 3);
  same("below", clamp(0, 1, 3), 1);
  same("inside", clamp(2, 1, 3), 2);
  printf("1..%d\n", count);
  exit(failed);
}
