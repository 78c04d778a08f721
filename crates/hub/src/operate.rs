//! What operators need: a table of what is going on, and the end of old sessions.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_conn::rpc::ErrorObject;
use attache_journal::{Claim, Error, SessionInfo, SessionKey};
use serde_json::{Value, json};
use tracing::warn;

use crate::hub::{Shared, describe_live};
use crate::identity::Identity;
use crate::session::Session;

/// Sessions of one page of a list.
const PAGE: usize = 256;

impl Shared {
    /// The sessions in memory of a tenant, and numbers of the whole hub for the default tenant.
    pub(crate) async fn status(&self, identity: &Identity) -> Result<Value, ErrorObject> {
        let tenant = identity.tenant_name();
        let live: Vec<Arc<Session>> = {
            let sessions = self.sessions.lock();
            let live = sessions.values().filter_map(|cell| cell.get());
            live.filter(|session| session.key.tenant() == tenant).map(Arc::clone).collect()
        };
        let mut described = Vec::new();
        for session in live {
            // It may have been deleted in the meantime.
            let Ok(info) = self.cx.journal.info(&session.key).await else { continue };
            let mut row = describe_live(&session, &info);
            let agent = session.summary.lock().agent;
            row["_meta"]["attache"]["bytes"] = json!(info.bytes);
            if let Some(pid) = agent {
                let memory = pid.and_then(resident);
                row["_meta"]["attache"]["agent"] = json!({"pid": pid, "memory": memory});
            }
            described.push(row);
        }
        let updated = |row: &Value| row["updatedAt"].to_string();
        described.sort_by_key(|row| std::cmp::Reverse(updated(row)));
        let mut status = json!({"sessions": described});
        // Other tenants do not learn how much is going on elsewhere.
        if tenant == Identity::TENANT {
            let metrics = &self.cx.metrics;
            status["clients"] = json!(metrics.clients.get());
            status["agents"] = json!(metrics.agents.get());
            status["turns"] = json!(metrics.turns.get());
            status["memory"] = json!(resident(std::process::id()));
        }
        Ok(status)
    }

    /// Removes old sessions of a tenant.
    pub(crate) async fn sweep(
        &self,
        tenant: &str,
        age: Option<Duration>,
        bytes: Option<u64>,
    ) -> Result<usize, Error> {
        let mut stored: Vec<SessionInfo> = Vec::new();
        loop {
            let after = stored.last().map(|info| info.key.session().to_owned());
            let page = self.cx.journal.list(tenant, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            stored.extend(page);
            if is_last {
                break;
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut total: u64 = stored.iter().map(|info| info.bytes).sum();
        stored.sort_by_key(|info| info.updated);
        let mut removed = 0;
        for info in stored {
            let unused = now.saturating_sub(Duration::from_millis(info.updated));
            let is_old = age.is_some_and(|age| unused > age);
            let is_over = bytes.is_some_and(|bytes| total > bytes);
            if (is_old || is_over) && self.remove_unused(&info.key).await {
                total = total.saturating_sub(info.bytes);
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes a session that is not in use.
    async fn remove_unused(&self, key: &SessionKey) -> bool {
        if self.sessions.lock().contains_key(key) {
            return false;
        }
        // Another hub may have it.
        let claim = Claim::new(self.cx.options.node.clone(), self.cx.options.lease).existing();
        let removed = match self.cx.journal.claim(key, &claim).await {
            Ok(_) => self.cx.journal.forget(key).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => true,
            Err(Error::Held { .. } | Error::Unknown) => false,
            Err(error) => {
                warn!(session = ?key, %error, "an old session cannot be removed");
                false
            }
        }
    }
}

/// The memory of a process in bytes, where the system says it.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|size| size * 1024)
}
