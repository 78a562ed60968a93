import { render } from "preact";
import { prepareSignIn } from "./api/sign_in";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/topologies.css";

const root = document.getElementById("app");
// After a redirect from the identity provider, the token is set before the first request.
void prepareSignIn().finally(() => root && render(<App />, root));
