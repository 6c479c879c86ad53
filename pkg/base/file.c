#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
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
