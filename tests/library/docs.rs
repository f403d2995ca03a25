//! Pages of docs that repeat facts of the library.

mod troubleshooting;
