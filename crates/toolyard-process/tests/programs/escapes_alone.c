/* Tries to get out of what landlock and seccomp alone confine it to, one way after another. Prints "NAME: ERROR" for each
 * that failed and "NAME: done" for one that did not; "NAME: needed, ERROR" for what a program must be able to do and was not.
 *
 * Arguments: a directory outside that holds "secret" and "daemon", a socket; the part to try: "files", which harms nothing
 * but that directory and its own if it gets out, or "all". It is started in a directory that holds "kept", which may not be
 * written, and "free/mine", which may. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static const char *outside;

static void try(const char *name, long result) {
    if (result < 0) printf("%s: %s\n", name, strerrorname_np(errno));
    else printf("%s: done\n", name);
    fflush(stdout);
}

#define TRY(name, call) do { errno = 0; try(name, (long)(call)); } while (0)
#define NEEDED(name, call) do { if ((long)(call) < 0) printf("%s: needed, %s\n", name, strerrorname_np(errno)); } while (0)

/* A path outside. */
static const char *out(const char *name) {
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", outside, name);
    return path;
}

/* A file of another process. */
static const char *of(pid_t process, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "/proc/%d/%s", process, name);
    return path;
}

/* Opens what was opened for its name alone. */
static int opened_again(const char *path) {
    char again[64];
    int named = open(path, O_PATH);
    if (named < 0) return -1;
    snprintf(again, sizeof again, "/proc/self/fd/%d", named);
    return open(again, O_RDONLY);
}

/* Executes a program to its end. */
static int executed(const char *path) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, NULL);
        _exit(errno);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
    errno = WEXITSTATUS(status);
    return errno == 0 ? 0 : -1;
}

static void files(void) {
    TRY("open outside", open(out("secret"), O_RDONLY));
    TRY("write outside", open(out("secret"), O_WRONLY));
    TRY("open outside again", opened_again(out("secret")));
    TRY("list outside", open(outside, O_RDONLY | O_DIRECTORY));
    TRY("truncate outside", truncate(out("secret"), 3));
    TRY("create outside", open(out("new"), O_CREAT | O_WRONLY, 0600));
    TRY("mkdir outside", mkdir(out("directory"), 0700));
    TRY("symlink outside", symlink("/", out("link")));
    TRY("link in", link(out("secret"), "free/stolen"));
    TRY("link out", link("free/mine", out("mine")));
    TRY("rename out", rename("free/mine", out("moved")));
    TRY("rename in", rename(out("secret"), "free/moved"));
    TRY("execute outside", executed(out("program")));
    TRY("setxattr outside", setxattr(out("unlinked"), "user.a", "b", 1, 0));
    TRY("unlink outside", unlink(out("unlinked")));
    TRY("open kept", open("kept", O_WRONLY));
    TRY("truncate kept", truncate("kept", 0));
    TRY("link kept", link("kept", "free/kept"));
    TRY("rename over kept", rename("free/other", "kept"));
    TRY("rename kept", rename("kept", "free/renamed"));
    TRY("put beside kept", open("beside", O_CREAT | O_WRONLY, 0600));
    TRY("rename beside kept", rename("free/another", "another"));
    TRY("create in kept", open("hooks/new", O_CREAT | O_WRONLY, 0600));
    TRY("unlink in kept", unlink("hooks/old"));
    TRY("rename into kept", rename("free/third", "hooks/third"));
    TRY("rename above kept", rename("hooks", "free/hooks"));
}

static void daemons(void) {
    struct sockaddr_un named = {.sun_family = AF_UNIX};
    struct sockaddr_un abstract = {.sun_family = AF_UNIX};
    int pair[2], made = 0;
    for (int family = 0; family < 64; family++)
        for (int type = 0; type < 16; type++)
            if (socket(family, type, 0) >= 0) printf("socket %d %d: done\n", family, type), made++;
    TRY("any socket", made ? 0 : (errno = EPERM, -1));
    TRY("socketpair datagram", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    TRY("socketpair sequence", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
    NEEDED("socketpair stream", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    snprintf(named.sun_path, sizeof named.sun_path, "%s", out("daemon"));
    strcpy(abstract.sun_path + 1, "abstract");
    TRY("connect named", connect(pair[0], (struct sockaddr *)&named, sizeof named));
    TRY("connect abstract", connect(pair[0], (struct sockaddr *)&abstract, sizeof abstract));
    TRY("shared memory", shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    TRY("message queue", msgget(IPC_PRIVATE, IPC_CREAT | 0600));
    TRY("semaphores", semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
    TRY("posix message queue", mq_open("/toolyard-escape", O_CREAT | O_RDWR, 0600, NULL));
    TRY("posix shared memory", open("/dev/shm/toolyard-escape", O_CREAT | O_RDWR, 0600));
    TRY("watch", inotify_init1(0));
    TRY("watch all", syscall(SYS_fanotify_init, 0, 0));
}

static void processes(void) {
    pid_t parent = getppid();
    struct rlimit limit = {1, 1};
    int handle = syscall(434, parent, 0);
    TRY("parent's environment", open(of(parent, "environ"), O_RDONLY));
    TRY("parent's memory", open(of(parent, "mem"), O_RDONLY));
    TRY("parent's maps", open(of(parent, "maps"), O_RDONLY));
    TRY("parent's file", open(of(parent, "fd/1"), O_RDONLY));
    TRY("parent's file's name", readlink(of(parent, "fd/1"), (char[64]){0}, 64));
    TRY("parent's root", open(of(parent, "root/etc/shadow"), O_RDONLY));
    TRY("parent's oom score", open(of(parent, "oom_score_adj"), O_WRONLY));
    TRY("kill parent", kill(parent, 0));
    TRY("kill parent by handle", syscall(424, handle, 0, NULL, 0));
    TRY("kill all", kill(-1, 0));
    TRY("limit parent", prlimit(parent, RLIMIT_CORE, &limit, NULL));
    TRY("parent's priority", setpriority(PRIO_PROCESS, parent, 19));
    TRY("user's priority", setpriority(PRIO_USER, 0, 19));
    TRY("parent's io priority", syscall(SYS_ioprio_set, 1, parent, 3 << 13));
    TRY("ptrace", ptrace(PTRACE_ATTACH, parent, 0, 0));
    TRY("process_vm_readv", syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0));
    TRY("process_vm_writev", syscall(SYS_process_vm_writev, parent, NULL, 0, NULL, 0, 0));
    TRY("pidfd_getfd", syscall(438, handle, 0, 0));
    TRY("kcmp", syscall(SYS_kcmp, parent, parent, 0, 0, 0));
    TRY("migrate_pages", syscall(SYS_migrate_pages, parent, 0, NULL, NULL));
}

static void privileges(void) {
    TRY("chown", chown("free/other", getuid(), getgid()));
    TRY("fchown", fchown(open("free/other", O_RDONLY), getuid(), getgid()));
    TRY("setxattr", setxattr("free/other", "user.a", "b", 1, 0));
    TRY("fsetxattr", fsetxattr(open("free/other", O_RDWR), "user.a", "b", 1, 0));
    TRY("setxattrat", syscall(463, AT_FDCWD, "free/other", 0, "user.a", NULL, 0));
    TRY("removexattr", removexattr("free/other", "user.a"));
    TRY("set-user-id", chmod("free/other", 04755));
    TRY("set-group-id", fchmod(open("free/other", O_RDWR), 02755));
    TRY("set-user-id at", syscall(SYS_fchmodat, AT_FDCWD, "free/other", 04755));
    TRY("set-user-id at 2", syscall(452, AT_FDCWD, "free/other", 04755, 0));
    TRY("device", mknod("free/null", S_IFCHR | 0666, 0x103));
    TRY("disk", mknod("free/disk", S_IFBLK | 0666, 0x800));
    TRY("socket file", mknod("free/socket", S_IFSOCK | 0666, 0));
    TRY("open device", open("/dev/mem", O_RDONLY));
    TRY("open terminal", open("/dev/tty", O_RDWR));
    TRY("kernel settings", open("/proc/sys/kernel/core_pattern", O_WRONLY));
    TRY("sysfs", open("/sys/kernel", O_RDONLY));
    TRY("groups", open("/sys/fs/cgroup/cgroup.procs", O_RDONLY));
    TRY("open shadow", open("/etc/shadow", O_RDONLY));
    TRY("open passwd", open("/etc/passwd", O_RDONLY));
    TRY("keep caps", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    TRY("new privileges", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY("unshare user", unshare(CLONE_NEWUSER));
    TRY("unshare net", unshare(CLONE_NEWNET));
    TRY("clone user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    TRY("clone3", syscall(435, NULL, 0));
    TRY("setns", setns(0, 0));
    TRY("mount", mount("none", "free", "tmpfs", 0, NULL));
    TRY("bind", mount(outside, "free", NULL, MS_BIND, NULL));
    TRY("umount", umount2("free", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("free"));
    TRY("open_tree", syscall(428, -100, "/", 1));
    TRY("fsopen", syscall(430, "tmpfs", 0));
    TRY("mount_setattr", syscall(442, -100, "/", 0, NULL, 0));
    TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, -100, NULL, 0));
    TRY("io_uring", syscall(425, 1, NULL));
    TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
    TRY("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    TRY("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    TRY("add_key", syscall(SYS_add_key, "user", "a", "b", 1, -1));
    TRY("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    TRY("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
    TRY("tiocsti", ioctl(0, TIOCSTI, "x"));
    TRY("tiocsti high", syscall(SYS_ioctl, 0, 0xF00000000ul | TIOCSTI, "x"));
#ifdef __x86_64__
    TRY("x32 ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
    TRY("x32 socket", syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0));
    TRY("x32 chown", syscall(0x40000000 | SYS_chown, "free/other", getuid(), getgid()));
#endif
}

/* What ordinary programs do. */
static void needed(void) {
    char own[4096];
    const char *temporary = getenv("TMPDIR");
    snprintf(own, sizeof own, "%s/a", temporary ? temporary : "");
    NEEDED("temporary file", open(own, O_CREAT | O_RDWR, 0600));
    NEEDED("create", open("free/made", O_CREAT | O_RDWR, 0600));
    NEEDED("rename", rename("free/made", "free/deep/made"));
    NEEDED("truncate", truncate("free/deep/made", 0));
    NEEDED("chmod", chmod("free/deep/made", 0755));
    NEEDED("utime", utime("free/deep/made", NULL));
    NEEDED("mkdir", mkdir("free/directory", 0700));
    NEEDED("rmdir", rmdir("free/directory"));
    NEEDED("symlink", symlink("made", "free/deep/link"));
    NEEDED("fifo", mkfifo("free/fifo", 0600));
    NEEDED("write beside kept", open("plain", O_WRONLY | O_TRUNC));
    NEEDED("read kept", open("kept", O_RDONLY));
    NEEDED("null", open("/dev/null", O_RDWR));
    NEEDED("random", open("/dev/urandom", O_RDONLY));
    NEEDED("processors", open("/proc/cpuinfo", O_RDONLY));
    NEEDED("itself", open("/proc/self/maps", O_RDONLY));
    NEEDED("own limit", prlimit(0, RLIMIT_CORE, &(struct rlimit){0, 0}, NULL));
    NEEDED("own priority", setpriority(PRIO_PROCESS, 0, 19));
    pid_t child = fork();
    if (child == 0) pause();
    NEEDED("fork", child);
    NEEDED("kill child", kill(child, SIGTERM));
    NEEDED("wait", waitpid(child, NULL, 0));
}

int main(int count, char **args) {
    (void)count;
    outside = args[1];
    needed();
    files();
    if (strcmp(args[2], "all") != 0) return 0;
    daemons();
    processes();
    privileges();
    return 0;
}
