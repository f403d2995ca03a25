;;; nuncio.el --- nuncio in agent-shell -*- lexical-binding: t; -*-

;;; Commentary:

;; Emacs (29.1 or newer) with agent-shell, which MELPA has: put this file on your `load-path' and `(require 'nuncio)' into your init file.
;; Then `M-x nuncio' starts it, and `M-x agent-shell' offers it among the others.

;;; Code:

(require 'agent-shell)

(defvar nuncio-command '("nuncio" "acp")
  "The program that speaks ACP, and its arguments.")

(defun nuncio-make-agent-config ()
  "Return nuncio's configuration for agent-shell."
  (agent-shell-make-agent-config
   :identifier 'nuncio
   :mode-line-name "nuncio"
   :buffer-name "nuncio"
   :shell-prompt "nuncio> "
   :shell-prompt-regexp "nuncio> "
   :client-maker (lambda (buffer)
                   (acp-make-client
                    :context-buffer buffer
                    :command (car nuncio-command)
                    :command-params (cdr nuncio-command)
                    :environment-variables (agent-shell-make-environment-variables :inherit-env t)))
   :install-instructions "Build nuncio with `cargo install --path .' and have it on your PATH."))

(add-to-list 'agent-shell-agent-configs (nuncio-make-agent-config) t)

;;;###autoload
(defun nuncio ()
  "Start nuncio in a new shell."
  (interactive)
  (agent-shell-start :config (nuncio-make-agent-config)))

(provide 'nuncio)

;;; nuncio.el ends here
