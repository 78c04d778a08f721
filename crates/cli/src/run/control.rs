//! `attache cancel`, `set-mode` and `set`.

use serde_json::{Value, json};

use super::permits::Permits;
use super::prompt::find;
use super::protocol::SetResult;
use super::setup::SessionSetup;
use super::worker::Setting;
use crate::cx::Cx;
use crate::error::{DetailCode, Kind, Result};
use crate::output::{Format, count};
use crate::runtime::runtime;
use crate::session_store::{Record, Store};

/// Cancels the prompt that runs.
pub(crate) fn cancel(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let record = match find(cx, &setup) {
        Ok(record) => Some(record),
        Err(failure) if failure.kind == Kind::NoSession => None,
        Err(failure) => return Err(failure),
    };
    let cancelled = match &record {
        Some(record) => runtime(send_cancel(cx, record))?,
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
async fn send_cancel(cx: &Cx, record: &Record) -> Result<bool> {
    use super::protocol::{RemoteCommand, Reply};
    use super::reach::{find_owner, request, unexpected_reply};
    let Some(mut link) = find_owner(&cx.paths, &record.id).await? else { return Ok(false) };
    match request(&mut link, &record.id, RemoteCommand::Cancel).await {
        Ok(Reply::Cancelled(cancelled)) => Ok(cancelled),
        Ok(_) => Err(unexpected_reply()),
        // It has just ended, and its prompt with it.
        Err(failure) if failure.detail == Some(DetailCode::OwnerGone) => Ok(false),
        Err(failure) => Err(failure),
    }
}

#[cfg(not(unix))]
async fn send_cancel(_cx: &Cx, _record: &Record) -> Result<bool> {
    Err(crate::error::Failure::runtime("prompts of other processes cannot be cancelled on this system"))
}

/// Switches the mode.
pub(crate) fn set_mode(cx: &Cx) -> Result<()> {
    let mode = cx.args.word(0).unwrap_or_default().to_owned();
    let (record, SetResult { resumed, .. }) = change(cx, Setting::Mode(mode.clone()))?;
    let done = json!({ "action": "mode_set", "modeId": mode, "resumed": resumed });
    print_set(cx, &record, done, &format!("mode set: {mode}"), &mode);
    Ok(())
}

/// Prints a setting that was changed: as JSON, as a sentence, or only its value.
fn print_set(cx: &Cx, record: &Record, json: Value, sentence: &str, value: &str) {
    match cx.output.format {
        Format::Json => cx.output.json(&with_identity(json, record)),
        Format::Text => cx.output.line(sentence),
        Format::Quiet => cx.output.row(value),
    }
}

/// Sets an option.
pub(crate) fn set(cx: &Cx) -> Result<()> {
    let (key, value) = (cx.args.word(0).unwrap_or_default(), cx.args.word(1).unwrap_or_default());
    if key == "model" {
        let (record, SetResult { resumed, .. }) = change(cx, Setting::Model(value.to_owned()))?;
        let done = json!({ "action": "model_set", "modelId": value, "resumed": resumed });
        print_set(cx, &record, done, &format!("model set: {value}"), value);
        return Ok(());
    }
    let (record, SetResult { resumed, options }) =
        change(cx, Setting::Option(key.to_owned(), value.to_owned()))?;
    let options_now = count(options.as_array().map_or(0, Vec::len) as u64, "option");
    let done = json!({ "action": "config_set", "configId": key, "value": value, "resumed": resumed, "configOptions": options });
    print_set(cx, &record, done, &format!("config set: {key}={value} ({options_now})"), value);
    Ok(())
}

/// Adds the ids of the session.
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

/// Changes a setting of the session. Returns the record after it.
fn change(cx: &Cx, setting: Setting) -> Result<(Record, SetResult)> {
    let setup = SessionSetup::new(cx)?;
    // Rules that are wrong are no reason not to make a setting.
    let permits = Permits::new(cx).or_else(|_| Permits::without_turn(cx))?;
    let record = find(cx, &setup)?;
    let setup = setup.with_record(&record);
    cx.warn();
    let result = runtime(send_setting(cx, &record, setup, permits, setting))?;
    Ok((Store::new(&cx.paths).get(&record.id).unwrap_or(record), result))
}

#[cfg(unix)]
async fn send_setting(
    cx: &Cx,
    record: &Record,
    setup: SessionSetup,
    permits: Permits,
    setting: Setting,
) -> Result<SetResult> {
    use super::protocol::{RemoteCommand, Reply};
    use super::reach::{needs_new_owner, reach_owner, replace_owner, request, unexpected_reply};
    let mut attempts = 0..3;
    loop {
        let mut link = reach_owner(&cx.paths, record, &setup, &permits, cx.config.settings.ttl).await?;
        match request(&mut link, &record.id, RemoteCommand::Set(setting.clone())).await {
            Err(refusal) if needs_new_owner(&refusal) && attempts.next().is_some() => {
                replace_owner(&cx.paths, record, &refusal).await?;
            }
            Ok(Reply::Set(result)) => return Ok(result),
            Ok(_) => return Err(unexpected_reply()),
            Err(failure) => return Err(failure),
        }
    }
}

#[cfg(not(unix))]
async fn send_setting(
    cx: &Cx,
    record: &Record,
    setup: SessionSetup,
    permits: Permits,
    setting: Setting,
) -> Result<SetResult> {
    use super::renderer::Renderer;
    use super::worker::Worker;
    let Some(_lock) = Store::new(&cx.paths).own(&record.id)? else {
        return Err(crate::error::Failure::runtime("a prompt runs in this session; wait for it"));
    };
    let mut worker = Worker::new(&cx.paths, setup, record, cx.output.verbose);
    let done = worker.set(&setting, &permits.between_turns(), &mut Renderer::Discard).await;
    worker.shutdown(false).await;
    done
}
