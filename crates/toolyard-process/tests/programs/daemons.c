/* Tries to reach daemons of this machine by sockets of it. Prints "NAME: ERROR" for each way that failed and "NAME: done"
 * for one that did not. Arguments: the places of daemons, "@NAME" for one without a file. At each of them one listens for
 * streams, and at the place with ".datagrams" behind it one for datagrams. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *place;

static void try(const char *way, long result) {
    printf("%s %s: %s\n", way, place, result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}

#define TRY(way, call) do { errno = 0; try(way, (long)(call)); } while (0)

static socklen_t address(struct sockaddr_un *address, const char *behind) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int written = snprintf(address->sun_path, sizeof address->sun_path, "%s%s", place, behind);
    if (address->sun_path[0] != '@') return sizeof *address;
    address->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + written;
}

static int connected(int stream) {
    struct sockaddr_un to;
    socklen_t length = address(&to, "");
    return connect(stream, (struct sockaddr *)&to, length);
}

static int told(int sender) {
    struct sockaddr_un to;
    socklen_t length = address(&to, ".datagrams");
    return sendto(sender, "x", 1, 0, (struct sockaddr *)&to, length);
}

/* An end of a pair that went through the pair, as a descriptor that somebody handed over. */
static int handed_over(int pair[2]) {
    char byte = 'x', space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    int fresh[2], received;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fresh) != 0) return -1;
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fresh[0], sizeof(int));
    if (sendmsg(pair[0], &message, 0) < 0 || recvmsg(pair[1], &message, 0) < 0) return -1;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    close(fresh[1]);
    return received;
}

int main(int count, char **places) {
    for (int i = 1; i < count; i++) {
        int pair[2], datagrams[2];
        place = places[i];
        TRY("connect", connected(socket(AF_UNIX, SOCK_STREAM, 0)));
        TRY("send", told(socket(AF_UNIX, SOCK_DGRAM, 0)));
        /* Of a pair that is a pipe, one end may have lost the other. */
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) printf("pair: needed\n");
        TRY("pair: connect", connected(pair[0]));
        TRY("pair: send", told(pair[0]));
        int received = handed_over(pair);
        if (received < 0) printf("handed over: needed\n");
        TRY("handed over: connect", connected(received));
        TRY("handed over: send", told(received));
        close(pair[1]);
        TRY("lone: connect", connected(pair[0]));
        TRY("disconnect", connect(pair[0], &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr)));
        TRY("disconnected: connect", connected(pair[0]));
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) != 0) datagrams[0] = -1;
        TRY("datagrams: send", told(datagrams[0]));
        TRY("tcp: connect", connected(socket(AF_INET, SOCK_STREAM, 0)));
    }
    return 0;
}
