//! The laws in memory.

use crate::laws::laws;
use crate::rig::Rig;

laws! { [] Rig::memory().await }
