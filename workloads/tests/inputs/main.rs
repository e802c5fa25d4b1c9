//! Tests of the inputs' types, loaders and generators, and of the checkers.

mod checkers;
mod damage;
mod formats;
mod generators;
mod mesh_check;
mod meshes;
mod real;
mod round_trips;
mod support;
