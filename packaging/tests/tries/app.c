/* A session, as somebody wrote it down. */
#include <stdbool.h>
#include <stdint.h>
struct session {
    bool alive;
    uint64_t id;
    uint16_t port;
    void *buffer;
    bool secure;
    double last_seen;
    char user[12];
    uint32_t retries;
};
struct session sessions[100];
int main(void) { return (int)sessions[0].id; }
