//! `attache cancel`, `set-mode` and `set`.

use serde_json::{Value, json};

use super::permits::Permits;
use super::prompt::find;
use super::setup::Setup;
use super::signals::runtime;
use super::worker::Setting;
use crate::cx::Cx;
use crate::error::{Kind, Result};
use crate::output::{Format, count};
use crate::session_store::{Record, Store};

/// Cancels the prompt that runs.
pub(crate) fn cancel(cx: &Cx) -> Result<()> {
    let setup = Setup::new(cx)?;
    let record = match find(cx, &setup) {
        Ok(record) => Some(record),
        Err(failure) if failure.kind == Kind::NoSession => None,
        Err(failure) => return Err(failure),
    };
    let cancelled = match &record {
        Some(record) => runtime(tell_cancel(cx, record))?,
        None => false,
    };
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "cancel_result",
            "acpxRecordId": record.map_or_else(|| "unknown".to_owned(), |record| record.id),
            "cancelled": cancelled,
        })),
        _ if cancelled => cx.output.line("cancel requested"),
        _ => cx.output.line("nothing to cancel"),
    }
    Ok(())
}

#[cfg(unix)]
async fn tell_cancel(cx: &Cx, record: &Record) -> Result<bool> {
    use super::ipc::VERSION;
    use super::reach::{find_owner, request};
    let Some(mut link) = find_owner(&cx.paths, &record.id).await? else { return Ok(false) };
    let message = json!({ "version": VERSION, "session": record.id, "do": "cancel" });
    match request(&mut link, &message).await {
        Ok(answer) => Ok(answer.get("cancelled").and_then(Value::as_bool).unwrap_or_default()),
        // It has just left, and its prompt with it.
        Err(failure) if failure.detail.as_deref() == Some("OWNER_GONE") => Ok(false),
        Err(failure) => Err(failure),
    }
}

#[cfg(not(unix))]
async fn tell_cancel(_cx: &Cx, _record: &Record) -> Result<bool> {
    Err(crate::error::Failure::runtime("prompts of other processes cannot be cancelled on this system"))
}

/// Switches the mode.
pub(crate) fn set_mode(cx: &Cx) -> Result<()> {
    let mode = cx.args.word(0).unwrap_or_default().to_owned();
    let Changed { record, resumed, .. } = change(cx, Setting::Mode(mode.clone()))?;
    match cx.output.format {
        Format::Json => {
            let done = json!({ "action": "mode_set", "modeId": mode, "resumed": resumed });
            cx.output.json(&with_identity(done, &record));
        }
        Format::Text => cx.output.line(format_args!("mode set: {mode}")),
        Format::Quiet => cx.output.row(mode),
    }
    Ok(())
}

/// Sets an option.
pub(crate) fn set(cx: &Cx) -> Result<()> {
    let (key, value) = (cx.args.word(0).unwrap_or_default(), cx.args.word(1).unwrap_or_default());
    if key == "model" {
        let Changed { record, resumed, .. } = change(cx, Setting::Model(value.to_owned()))?;
        match cx.output.format {
            Format::Json => {
                let done = json!({ "action": "model_set", "modelId": value, "resumed": resumed });
                cx.output.json(&with_identity(done, &record));
            }
            Format::Text => cx.output.line(format_args!("model set: {value}")),
            Format::Quiet => cx.output.row(value),
        }
        return Ok(());
    }
    let Changed { record, resumed, set: options } =
        change(cx, Setting::Option(key.to_owned(), value.to_owned()))?;
    let options_now = count(options.as_array().map_or(0, Vec::len) as u64, "option");
    match cx.output.format {
        Format::Json => cx.output.json(&with_identity(
            json!({ "action": "config_set", "configId": key, "value": value, "resumed": resumed, "configOptions": options }),
            &record,
        )),
        Format::Text => cx.output.line(format_args!("config set: {key}={value} ({options_now})")),
        Format::Quiet => cx.output.row(value),
    }
    Ok(())
}

/// Adds which session it was.
fn with_identity(mut value: Value, record: &Record) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.insert("acpxRecordId".to_owned(), json!(record.id));
        object.insert("acpxSessionId".to_owned(), json!(record.session_id));
        if let Some(id) = &record.agent_session {
            object.insert("agentSessionId".to_owned(), json!(id));
        }
    }
    value
}

/// What became of a setting.
struct Changed {
    record: Record,
    /// Whether the agent was started for it, and found the session again.
    resumed: bool,
    /// What the agent says is set now.
    set: Value,
}

fn change(cx: &Cx, setting: Setting) -> Result<Changed> {
    let setup = Setup::new(cx)?;
    // Rules that are wrong are no reason not to make a setting.
    let permits = Permits::new(cx).or_else(|_| Permits::without_turn(cx))?;
    let record = find(cx, &setup)?;
    let setup = setup.with_record(&record);
    cx.warn();
    let mut done = runtime(tell_setting(cx, &record, setup, permits, setting))?;
    let record = Store::new(&cx.paths).get(&record.id).unwrap_or(record);
    let resumed = done.get("resumed").and_then(Value::as_bool).unwrap_or_default();
    let set = done.get_mut("set").map(Value::take).unwrap_or_default();
    Ok(Changed { record, resumed, set })
}

#[cfg(unix)]
async fn tell_setting(
    cx: &Cx,
    record: &Record,
    setup: Setup,
    permits: Permits,
    setting: Setting,
) -> Result<Value> {
    use super::ipc::VERSION;
    use super::reach::{needs_new_owner, reach_owner, replace_owner, request};
    let (what, key, value) = match setting {
        Setting::Mode(mode) => ("mode", None, mode),
        Setting::Model(model) => ("model", None, model),
        Setting::Option(key, value) => ("option", Some(key), value),
    };
    let message = json!({
        "version": VERSION,
        "session": record.id,
        "do": "set",
        "what": what,
        "key": key,
        "value": value,
    });
    let mut attempts = 0..3;
    loop {
        let mut link = reach_owner(&cx.paths, record, &setup, &permits, super::prompt::ttl(cx)).await?;
        match request(&mut link, &message).await {
            Err(refusal) if needs_new_owner(&refusal) && attempts.next().is_some() => {
                replace_owner(&cx.paths, record, &refusal).await?;
            }
            answer => return answer,
        }
    }
}

#[cfg(not(unix))]
async fn tell_setting(
    cx: &Cx,
    record: &Record,
    setup: Setup,
    permits: Permits,
    setting: Setting,
) -> Result<Value> {
    use super::front::Front;
    use super::worker::Worker;
    let Some(_lock) = Store::new(&cx.paths).own(&record.id)? else {
        return Err(crate::error::Failure::runtime("a prompt runs in this session; wait for it"));
    };
    let mut worker = Worker::new(&cx.paths, setup, record, cx.output.verbose);
    let done = worker.set(&setting, &permits.between_turns(), &mut Front::Nobody).await;
    worker.shutdown(false).await;
    done
}
