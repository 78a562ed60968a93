import { render } from "preact";
import { prepareSignIn } from "./api/sign_in";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/topologies.css";

const root = document.getElementById("app");
// Whoever comes back from the identity provider has a token before the first request.
void prepareSignIn().finally(() => root && render(<App />, root));
