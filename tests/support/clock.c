/* Another time of day for one program: cc -shared -fPIC -o clock.so clock.c, then
   LD_PRELOAD=clock.so CLOCK_OFF_S=-86400 program. The monotonic clock stays as it is. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off_s(void) {
    const char *text = getenv("CLOCK_OFF_S");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t which, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, which, at);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        at->tv_sec += off_s();
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
