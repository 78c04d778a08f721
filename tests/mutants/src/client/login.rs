//! Authentication.

use super::Client;
use super::wire::Halt;
use serde_json::{Value, json};

/// The type of a method. AUTH-07: one without a type is the agent's own.
enum Method {
    Agent(String),
    Terminal { args: Vec<String>, env: Vec<(String, String)>, id: String },
}

impl Client {
    fn methods(&self) -> Vec<Method> {
        let state = self.state();
        let offered = state.agent.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        offered.filter_map(|method| self.method(method)).collect()
    }

    fn method(&self, method: &Value) -> Option<Method> {
        let id = method.get(if self.speaks_2() { "methodId" } else { "id" })?.as_str()?.to_owned();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match method.get("type").and_then(Value::as_str) {
            None if self.is("AUTH-07") => None,
            None | Some("agent") => Some(Method::Agent(id)),
            Some("terminal") => {
                let args = method.get("args").and_then(Value::as_array).into_iter().flatten();
                Some(Method::Terminal { args: args.filter_map(text).collect(), env: variables(method), id })
            }
            // AUTH-21: a kind that we do not know is none that we can use.
            Some(_) if self.is("AUTH-21") => Some(Method::Agent(id)),
            Some(_) => None,
        }
    }

    /// AUTH-02, AUTH-03: with one of the methods that the agent announced.
    pub(super) async fn login(&self) -> Result<(), Halt> {
        let methods = self.methods();
        for method in &methods {
            if let Method::Agent(id) = method {
                return self.authenticate(id).await;
            }
        }
        for method in methods {
            if let Method::Terminal { args, env, id } = method {
                // AUTH-10: such a method is a program to run, not one to call.
                if self.is("AUTH-10") {
                    return self.authenticate(&id).await;
                }
                return self.terminal_login(args, env).await;
            }
        }
        Err(Halt::Unsupported)
    }

    async fn authenticate(&self, id: &str) -> Result<(), Halt> {
        let id = if self.is("AUTH-03") { "somebody-else" } else { id };
        let params = match self.setup.variant.as_deref() {
            Some("AUTH-20") => json!({ "methodId": id, "credentials": { "token": "t" } }),
            _ => json!({ "methodId": id }),
        };
        let login = if self.speaks_2() { "auth/login" } else { "authenticate" };
        self.call(login, params).await.map(drop)
    }

    /// AUTH-11, AUTH-12: the agent's program once more, with the method's words added; it worked if
    /// it ends well.
    async fn terminal_login(&self, args: Vec<String>, env: Vec<(String, String)>) -> Result<(), Halt> {
        let Some(relaunch) = &self.setup.relaunch else { return Err(Halt::Unsupported) };
        let args = if self.is("AUTH-11") { Vec::new() } else { args };
        if relaunch(args, env).await || self.is("AUTH-12") { Ok(()) } else { Err(Halt::Unsupported) }
    }

    /// Asks, and once more after authenticating if the agent says that it is needed (AUTH-02,
    /// NES-07).
    pub(super) async fn call_known(&self, method: &str, params: Value) -> Result<Value, Halt> {
        match self.call(method, params.clone()).await {
            // AUTH-19: also in the middle of a session.
            Err(halt) if halt.code() == Some(-32000) && method == "session/prompt" => {
                if self.is("AUTH-19") {
                    self.stop().await;
                }
                Err(halt)
            }
            Err(halt) if halt.code() == Some(-32000) => {
                let skips = (self.is("AUTH-02") && method == "session/new")
                    || (self.is("NES-07") && method == "nes/start");
                if self.is("NES-07") && skips {
                    return Err(halt);
                }
                if !skips {
                    self.login().await?;
                }
                self.call(method, params).await
            }
            outcome => outcome,
        }
    }

    /// AUTH-16: only where the agent can.
    pub(super) async fn logout(&self) -> Result<(), Halt> {
        if self.speaks_2() {
            // V2-07: every agent with methods of authentication can.
            let able = self.state().agent["authMethods"].as_array().is_some_and(|list| !list.is_empty());
            if !able && !self.is("AUTH-16") {
                return Err(Halt::Unsupported);
            }
            return self.call("auth/logout", json!({})).await.map(drop);
        }
        self.require("/auth/logout")?;
        self.call("logout", json!({})).await.map(drop)
    }

    pub(super) async fn auth_status(&self) -> Result<(), Halt> {
        self.require("/auth/status")?;
        let status = self.call("auth/status", json!({})).await?;
        super::updates::odd_state(self, &status).await;
        Ok(())
    }
}

/// The variables of a terminal method: an object in version 1, a list in version 2.
fn variables(method: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match &method["env"] {
        Value::Object(env) => {
            env.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
        }
        Value::Array(env) => {
            env.iter().filter_map(|pair| Some((text(&pair["name"])?, text(&pair["value"])?))).collect()
        }
        _ => Vec::new(),
    }
}
