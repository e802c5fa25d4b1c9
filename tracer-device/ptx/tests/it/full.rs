//! Full tier: all texts are assembled, and spliced in all ways.

use crate::stored_code::CodeStore;
use crate::{STORE, assemble, foreign};

#[test]
fn the_store_has_what_the_assembler_makes_of_each_text() {
    let Some(store) = CodeStore::fresh(STORE) else { return };
    assemble::check_probes(&store);
    assemble::check_values(&store);
    foreign::check_machine_code(&store);
    store.check("");
}

#[test]
fn what_is_spliced_stays_the_same_text() {
    foreign::check_hashes(false);
}
