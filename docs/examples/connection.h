/* One connection of the server. */
struct connection {
    int fd, state;
    unsigned long received;          /* the receiver's thread */
    unsigned long sent;              /* the sender's thread */
    char name[40];
};
