//! Bodies of a star cluster.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Bodies, Float4};

/// ChaCha8 stream of these inputs, different from the input generators' streams. Never change.
const STREAM: u64 = 64;
/// Share of the mass that is generated. The outermost part is left out, so that no body starts very far away.
const INNER_MASS: f64 = 0.999;

/// Generates `count` bodies of equal mass, 1 / `count`, in a Plummer sphere in equilibrium. Standard units: G
/// = 1, total mass 1, total energy -1/4. The same seed gives the same bodies.
///
/// Follows Aarseth, Henon, Wielen, "A Comparison of Numerical Methods for the Study of Star Cluster Dynamics"
/// (1974), appendix: radius from the inverse of the mass profile, speed by rejection from the distribution of
/// energies, both in random directions, in double precision. Results are rounded to single.
pub fn plummer(count: usize, seed: u64) -> Bodies {
    let mut random = Random::new(seed);
    let to_length = 3.0 * std::f64::consts::PI / 16.0;
    let to_speed = to_length.sqrt().recip();
    let mass = (1.0 / count.max(1) as f64) as f32;
    let mut bodies = Bodies { positions: Vec::with_capacity(count), velocities: Vec::with_capacity(count) };
    for _ in 0..count {
        let radius = random.radius();
        let escape = std::f64::consts::SQRT_2 * (1.0 + radius * radius).powf(-0.25);
        let speed = random.share_of_escape_speed() * escape;
        bodies.positions.push(random.direction(radius * to_length, mass));
        bodies.velocities.push(random.direction(speed * to_speed, 0.0));
    }
    bodies
}

struct Random(ChaCha8Rng);

impl Random {
    fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(STREAM);
        Self(rng)
    }

    /// Returns a uniform number in (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Returns a distance from the centre in Plummer radii; the mass inside r is (1 + r^-2)^(-3/2).
    fn radius(&mut self) -> f64 {
        ((self.unit() * INNER_MASS).powf(-2.0 / 3.0) - 1.0).sqrt().recip()
    }

    /// Returns q with a density proportional to q^2 (1 - q^2)^(7/2), which is below 0.1 everywhere.
    fn share_of_escape_speed(&mut self) -> f64 {
        loop {
            let (q, height) = (self.unit(), 0.1 * self.unit());
            if height < q * q * (1.0 - q * q).powf(3.5) {
                return q;
            }
        }
    }

    /// Returns a vector of this length in a direction uniform on the sphere, by rejection from the cube.
    fn direction(&mut self, length: f64, w: f32) -> Float4 {
        loop {
            let [x, y, z] = [(); 3].map(|()| 2.0 * self.unit() - 1.0);
            let square = x * x + y * y + z * z;
            if square <= 1.0 && square > 1e-12 {
                let scale = length / square.sqrt();
                return Float4 { x: (x * scale) as f32, y: (y * scale) as f32, z: (z * scale) as f32, w };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(v: &Float4) -> f64 {
        f64::from(v.x).powi(2) + f64::from(v.y).powi(2) + f64::from(v.z).powi(2)
    }

    #[test]
    fn the_sphere_is_in_equilibrium() {
        let bodies = plummer(2_000, 7);
        let mass = 1.0 / 2_000.0;
        let kinetic: f64 = bodies.velocities.iter().map(|v| 0.5 * mass * square(v)).sum();
        let mut potential = 0.0;
        for (i, a) in bodies.positions.iter().enumerate() {
            for b in &bodies.positions[..i] {
                let d = Float4 { x: a.x - b.x, y: a.y - b.y, z: a.z - b.z, w: 0.0 };
                potential -= mass * mass / square(&d).sqrt();
            }
        }
        // Virial theorem and standard units, up to the sampling of 2,000 bodies.
        assert!((kinetic - 0.25).abs() < 0.02, "kinetic energy {kinetic}");
        assert!((potential + 0.5).abs() < 0.03, "potential energy {potential}");
    }

    #[test]
    fn half_the_mass_lies_inside_the_half_mass_radius() {
        let bodies = plummer(10_000, 1);
        // 1.305 Plummer radii; a Plummer radius is 3 pi / 16 (0.589) of the standard length.
        let inside = bodies.positions.iter().filter(|p| square(p).sqrt() < 1.305 * 0.589).count();
        assert!((4_800..5_200).contains(&inside), "{inside} of 10,000");
    }

    #[test]
    fn a_seed_names_the_bodies() {
        assert_eq!(plummer(100, 3), plummer(100, 3));
        assert_ne!(plummer(100, 3), plummer(100, 4));
        assert_eq!(plummer(0, 3), Bodies::default());
        // A larger number of bodies starts with the same bodies, except for their mass.
        assert_eq!(plummer(100, 3).velocities[..10], plummer(10, 3).velocities);
    }
}
