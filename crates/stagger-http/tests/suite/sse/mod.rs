//! Server-sent events: the parser, and the client in virtual time and on sockets.

mod parser;
mod parser_laws;
