//! Keys of masked frames.

use super::socket::Role;
use ring::rand::{SecureRandom, SystemRandom};

/// Unpredictable mask keys, fetched from the system in batches.
#[derive(Default)]
pub(super) struct MaskKeys {
    keys: Vec<[u8; 4]>,
}

impl MaskKeys {
    pub(super) fn next(&mut self, role: Role) -> Option<[u8; 4]> {
        if role == Role::Server {
            return None;
        }
        if self.keys.is_empty() {
            let mut bytes = [0; 256];
            // Without random numbers TLS would have failed as well; the mask protects proxies, not
            // the connection.
            let _ = SystemRandom::new().fill(&mut bytes);
            self.keys.extend_from_slice(bytes.as_chunks::<4>().0);
        }
        self.keys.pop()
    }
}
