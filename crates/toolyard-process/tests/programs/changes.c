/* Tries to change files that it may not write, without opening them where that is possible. Prints "NAME: ERROR" for each
 * way that failed and "NAME: done" for one that did not. Arguments: the directory that holds them, "file", "moved",
 * "removed", "replaced" and "directory"; and "all", or "some" to leave out modes and times. It is started in a directory
 * that it may write, with "mine", "over" and "exchanged" in it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static const char *outside;

static void try(const char *way, long result) {
    printf("%s: %s\n", way, result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}

#define TRY(way, call) do { errno = 0; try(way, (long)(call)); } while (0)

static const char *out(const char *name) {
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", outside, name);
    return path;
}

/* A name of what was opened for its name alone. */
static const char *handle(const char *name) {
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(out(name), O_PATH));
    return path;
}

static void modes_and_times(void) {
    struct timespec times[2] = {{1, 0}, {1, 0}};
    struct timeval old[2] = {{2, 0}, {2, 0}};
    TRY("chmod", chmod(out("file"), 0777));
    TRY("fchmodat", fchmodat(AT_FDCWD, out("file"), 0776, 0));
    TRY("chmod by handle", chmod(handle("file"), 0775));
    TRY("chmod of directory", chmod(outside, 0777));
    TRY("utime", utime(out("file"), NULL));
    TRY("utimes", utimes(out("file"), old));
    TRY("utimensat", utimensat(AT_FDCWD, out("file"), times, 0));
    TRY("utimensat of link", utimensat(AT_FDCWD, out("file"), times, AT_SYMLINK_NOFOLLOW));
    TRY("utime by handle", utime(handle("file"), NULL));
    TRY("utime of directory", utime(outside, NULL));
}

int main(int count, char **args) {
    (void)count;
    outside = args[1];
    if (strcmp(args[2], "all") == 0) modes_and_times();
    TRY("truncate", truncate(out("file"), 3));
    TRY("truncate by handle", truncate(handle("file"), 2));
    TRY("open to empty", open(out("file"), O_WRONLY | O_TRUNC));
    TRY("open to read and empty", open(out("file"), O_RDONLY | O_TRUNC));
    TRY("creat", creat(out("file"), 0600));
    TRY("setxattr", setxattr(out("file"), "user.b", "b", 1, 0));
    TRY("lsetxattr", lsetxattr(out("file"), "user.c", "c", 1, 0));
    TRY("setxattr by handle", setxattr(handle("file"), "user.d", "d", 1, 0));
    TRY("setxattr of directory", setxattr(outside, "user.e", "e", 1, 0));
    TRY("removexattr", removexattr(out("file"), "user.a"));
    TRY("chown", chown(out("file"), getuid(), getgid()));
    TRY("lchown", lchown(out("file"), getuid(), getgid()));
    TRY("fchownat", fchownat(AT_FDCWD, out("file"), getuid(), getgid(), 0));
    TRY("chown of directory", chown(outside, getuid(), getgid()));
    TRY("link in", link(out("file"), "stolen"));
    TRY("link in by handle", linkat(AT_FDCWD, handle("file"), AT_FDCWD, "stolen too", AT_SYMLINK_FOLLOW));
    TRY("link out", link("mine", out("mine")));
    TRY("symlink out", symlink("/", out("link")));
    TRY("rename in", rename(out("moved"), "moved"));
    TRY("rename over", rename("over", out("replaced")));
    TRY("exchange", syscall(SYS_renameat2, AT_FDCWD, "exchanged", AT_FDCWD, out("replaced"), 2));
    TRY("rename beside", rename(out("file"), out("beside")));
    TRY("unlink", unlink(out("removed")));
    TRY("rmdir", rmdir(out("directory")));
    TRY("mkdir", mkdir(out("new directory"), 0700));
    TRY("mkfifo", mkfifo(out("new pipe"), 0600));
    return 0;
}
