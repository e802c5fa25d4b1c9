//! Seeded generators: the same parameters and seed give the same graph or mesh on every machine.
//!
//! Random numbers come from ChaCha8 with the seed as the key and one stream per generator. Real numbers use
//! 53 random bits. Decisions depend only on operations that IEEE 754 rounds exactly.
//! `tests/it/inputs/generators.rs` freezes the outputs.

mod co_purchase;
#[cfg(feature = "evaluation")]
mod delaunay;
mod error;
mod points;
mod power_law;
mod presets;
mod random;
mod rmat;
mod road;
mod weights;

pub use co_purchase::co_purchase;
#[cfg(feature = "evaluation")]
pub use delaunay::{mesh_250k_like, mesh_r1m_like, triangulate};
pub use error::GenerateError;
pub use points::{points_in_square, points_in_triangle};
pub use power_law::preferential_attachment;
pub use presets::{amazon0312_like, internet_like, rmat12, usa_road_ny_like};
pub use rmat::{Rmat, rmat};
pub use road::{RoadGrid, road_grid};
pub use weights::{THESIS_WEIGHTS, random_weights};
