/* Tries to get out of what it is confined to, one way after another. Prints "NAME: ERROR" for each that failed and
 * "NAME: done" for one that did not. Arguments: a path outside, a file inside that may not be written. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static void try(const char *name, long result) {
    if (result < 0) printf("%s: %s\n", name, strerrorname_np(errno));
    else printf("%s: done\n", name);
    fflush(stdout);
}

#define TRY(name, call) do { errno = 0; try(name, (long)(call)); } while (0)

int main(int count, char **args) {
    const char *outside = args[1], *kept = args[2];
    struct sockaddr_un named = {.sun_family = AF_UNIX};
    (void)count;

    /* Files of others. */
    TRY("open outside", open(outside, O_RDONLY));
    TRY("create outside", open("/etc/new", O_CREAT | O_WRONLY, 0600));
    TRY("open kept", open(kept, O_WRONLY));
    TRY("truncate kept", truncate(kept, 0));
    TRY("chmod kept", chmod(kept, 0777));
    TRY("utime kept", utime(kept, NULL));
    TRY("setxattr kept", setxattr(kept, "user.a", "b", 1, 0));
    TRY("rename kept", rename(kept, "/tmp/renamed"));
    TRY("chmod system", chmod("/usr/bin/env", 0777));
    TRY("open shadow", open("/etc/shadow", O_RDONLY));
    TRY("open device", open("/dev/mem", O_RDONLY));
    TRY("mknod", mknod("/tmp/null", S_IFCHR | 0666, 0x103));
    TRY("proc root", open("/proc/1/root/etc/shadow", O_RDONLY));
    TRY("proc mem", open("/proc/1/mem", O_RDWR));
    TRY("proc environ", open("/proc/1/environ", O_RDONLY));
    TRY("sysrq", open("/proc/sysrq-trigger", O_WRONLY));
    TRY("core pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY));
    TRY("oom score", open("/proc/1/oom_score_adj", O_WRONLY));
    TRY("kcore", open("/proc/kcore", O_RDONLY));
    TRY("sysfs", open("/sys/kernel", O_RDONLY));

    /* Daemons and networks. */
    TRY("socket unix", socket(AF_UNIX, SOCK_STREAM, 0));
    TRY("socket inet", socket(AF_INET, SOCK_STREAM, 0));
    TRY("socket inet6", socket(AF_INET6, SOCK_DGRAM, 0));
    TRY("socket inet datagram", socket(AF_INET, SOCK_DGRAM, 0));
    TRY("socket inet raw", socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
    TRY("socket inet mptcp", socket(AF_INET, SOCK_STREAM, 262));
    TRY("socket inet sctp", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    TRY("socket inet high", syscall(SYS_socket, 0xF00000000ul | AF_INET, SOCK_DGRAM, 0));
    TRY("socket netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    TRY("socket packet", socket(AF_PACKET, SOCK_RAW, 0));
    TRY("socket vsock", socket(40, SOCK_STREAM, 0));
    int pair[2];
    TRY("socketpair datagram", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    TRY("socketpair inet", socketpair(AF_INET, SOCK_STREAM, 0, pair));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) printf("socketpair stream: needed\n");
    strcpy(named.sun_path + 1, "abstract");
    TRY("connect abstract", connect(pair[0], (struct sockaddr *)&named, sizeof named));

    /* Other processes. */
    TRY("kill init", kill(1, SIGKILL));
    TRY("kill helper", kill(getppid() == 1 ? 999999 : getppid(), 0));
    TRY("ptrace", ptrace(PTRACE_ATTACH, 1, 0, 0));
    TRY("process_vm_readv", syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
    TRY("pidfd_getfd", syscall(438, 0, 0, 0));
    TRY("kcmp", syscall(SYS_kcmp, 1, 1, 0, 0, 0));

    /* Namespaces, mounts and privileges. */
    TRY("unshare user", unshare(CLONE_NEWUSER));
    TRY("clone user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    TRY("clone3", syscall(435, NULL, 0));
    TRY("setns", setns(0, 0));
    TRY("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    TRY("remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("umount", umount2("/tmp", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("/tmp"));
    TRY("open_tree", syscall(428, -100, "/", 1));
    TRY("fsopen", syscall(430, "tmpfs", 0));
    TRY("mount_setattr", syscall(442, -100, "/", 0, NULL, 0));
    TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, -100, NULL, 0));
    TRY("setuid", setuid(0));
    TRY("keep caps", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    TRY("new privileges", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));

    /* The kernel. */
    TRY("io_uring", syscall(425, 1, NULL));
    TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
    TRY("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    TRY("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    TRY("add_key", syscall(SYS_add_key, "user", "a", "b", 1, -1));
    TRY("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    TRY("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
    TRY("kexec", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    TRY("tiocsti", ioctl(0, TIOCSTI, "x"));
    TRY("tiocsti high", syscall(SYS_ioctl, 0, 0xF00000000ul | TIOCSTI, "x"));
    TRY("tioclinux", ioctl(0, 0x541C, "\2"));
#ifdef __x86_64__
    TRY("x32 ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
    TRY("x32 socket", syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0));
#endif
    return 0;
}
