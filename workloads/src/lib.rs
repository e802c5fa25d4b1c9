//! The traced programs: host drivers, CPU references, input loaders and generators.
