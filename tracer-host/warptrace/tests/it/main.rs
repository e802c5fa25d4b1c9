//! Integration tests of the package.

mod attribute;
mod causes;
mod example;
mod facade;
mod mistakes;
mod own_context;
mod roles;
mod values;
mod waits;
