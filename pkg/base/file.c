#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int read_all(int fd, struct buf *content, const char *path, struct error *err)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERROR_SYSTEM, "cannot read %s: %s", path, strerror(errno));
        if (buf_append(content, chunk, (size_t)n) < 0)
            return error_set(err, ERROR_TOO_LARGE, "%s is larger than %zu bytes", path,
                             content->max);
    }
    return 0;
}

char *file_read(const char *path, size_t max, size_t *len, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_SYSTEM, "cannot open %s: %s", path,
                  strerror(errno));
        return NULL;
    }
    cleanup_buf struct buf content;
    buf_init(&content, max);
    int result = read_all(fd, &content, path, err);
    close(fd);
    if (result < 0)
        return NULL;
    if (len)
        *len = content.len;
    return buf_take(&content);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd);
}

/* So that the new name outlives a crash, too. Best effort: not every file system can. */
static void sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *directory =
        slash ? xasprintf("%.*s", (int)(slash - path + 1), path) : xstrdup(".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

int file_write(const char *path, const void *data, size_t len, struct error *err)
{
    cleanup_free char *beside = xasprintf("%s.%ld.tmp", path, (long)getpid());
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, "cannot write %s: %s", beside, strerror(errno));
    int failed = write_all(fd, data, len) < 0 ? errno : 0;
    if (close(fd) < 0 && !failed)
        failed = errno;
    if (!failed && rename(beside, path) < 0)
        failed = errno;
    if (failed) {
        unlink(beside);
        return error_set(err, ERROR_SYSTEM, "cannot write %s: %s", path, strerror(failed));
    }
    sync_directory(path);
    return 0;
}

char *file_beside_program(const char *name)
{
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(program, '/');
    return xasprintf("%.*s/%s", slash ? (int)(slash - program) : 0, program, name);
}
