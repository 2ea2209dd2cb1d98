#!/bin/bash
printf 'hello alidade\n' > /app/greeting.txt
