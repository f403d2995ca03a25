;;; emacs.el --- editors/emacs/nuncio.el in a batch Emacs -*- lexical-binding: t; -*-

;;; Commentary:

;; Loads the snippet with stand-ins for the functions of agent-shell that it calls, once for each
;; shape that `agent-shell-agent-configs' may have, and looks up nuncio as agent-shell does.
;; ACP_EL names a checkout of acp.el, the library with which agent-shell speaks to agents: it then
;; sends a prompt, answers the permission request, and nuncio edits a file of the scripted model.
;; `emacs --batch -Q -l emacs.el NUNCIO'; it exits with 255 and the reason when something does not
;; hold.

;;; Code:

(require 'seq)

(defvar agent-shell-agent-configs nil)

(defun agent-shell-make-agent-config (&rest arguments)
  "Return the alist of ARGUMENTS that names an agent."
  (list (cons :identifier (plist-get arguments :identifier))))

(provide 'agent-shell)

(defun test-configured ()
  "Return the agents, as `agent-shell--resolved-agent-configs' does."
  (mapcar (lambda (entry) (if (functionp entry) (funcall entry) entry))
          (if (functionp agent-shell-agent-configs)
              (funcall agent-shell-agent-configs)
            agent-shell-agent-configs)))

(defun test-other () "Return another agent." '((:identifier . other)))
(defun test-agents () "Return the agents of a user." (list #'test-other))

(let ((snippet (expand-file-name "../../editors/emacs/nuncio.el" (file-name-directory load-file-name))))
  (dolist (configs (list nil
                         '(((:identifier . other)))
                         (list #'test-other)
                         #'test-agents
                         (lambda () (list #'test-other))))
    (setq agent-shell-agent-configs configs)
    (load snippet nil t)
    (load snippet nil t)
    (let ((found (seq-count (lambda (config) (eq (alist-get :identifier config) 'nuncio))
                            (test-configured))))
      (unless (= found 1)
        (error "With %S, nuncio is offered %d times" configs found)))))

(defun test-send (client request)
  "Send REQUEST with the real acp.el and return the response of nuncio, within 30 seconds."
  (let (response failure)
    (acp-send-request :client client :request request
                      :on-success (lambda (result) (setq response (or result t)))
                      :on-failure (lambda (why &rest _) (setq failure why)))
    (with-timeout (30 (error "No response to %S" request))
      (while (not (or response failure))
        (accept-process-output nil 0.1)))
    (when failure
      (error "%S failed: %S" request failure))
    response))

(defun test-acp (nuncio)
  "Let the program NUNCIO edit a file, over acp.el."
  (let* ((directory (file-name-as-directory (make-temp-file "nuncio-emacs-" t)))
         (file (expand-file-name "greeting.txt" directory))
         (here (file-name-directory load-file-name))
         (environment (list (concat "NUNCIO_HOME=" (expand-file-name "nuncio" directory))
                            (concat "NUNCIO_MODEL=scripted:" (expand-file-name "documented.json" here))))
         (client (acp-make-client :context-buffer (current-buffer) :command nuncio
                                  :command-params '("acp") :environment-variables environment))
         (bytes (lambda ()
                  (with-temp-buffer
                    (set-buffer-multibyte nil)
                    (insert-file-contents-literally file)
                    (buffer-string))))
         (text "") asked session)
    (let ((coding-system-for-write 'no-conversion))
      (write-region "\357\273\277Hello, world\r\n\r\nend" nil file nil 'silent))
    (acp-subscribe-to-notifications
     :client client
     :on-notification (lambda (notification)
                        (let ((update (map-nested-elt notification '(params update))))
                          (when (equal (map-elt update 'sessionUpdate) "agent_message_chunk")
                            (setq text (concat text (map-nested-elt update '(content text))))))))
    (acp-subscribe-to-requests
     :client client
     :on-request (lambda (request)
                   (push (map-nested-elt request '(params toolCall title)) asked)
                   (acp-send-response
                    :client client
                    :response (acp-make-session-request-permission-response
                               :request-id (map-elt request 'id) :option-id "allow_once"))))
    (test-send client (acp-make-initialize-request :protocol-version 1))
    (setq session (map-elt (test-send client (acp-make-session-new-request :cwd directory :mcp-servers []))
                           'sessionId))
    (let ((response (test-send client (acp-make-session-prompt-request
                                       :session-id session :prompt '[((type . "text") (text . "Edit it."))]))))
      (unless (equal (list (map-elt response 'stopReason) asked text)
                     '("end_turn" ("Edit greeting.txt") "I will read the file.\nNow I edit it.\nDone.\n"))
        (error "%S, asked %S, said %S" response asked text)))
    (unless (equal (funcall bytes) "\357\273\277Good morning, world\r\n\r\nend")
      (error "The file is %S" (funcall bytes)))
    (acp-shutdown :client client)
    (delete-directory directory t)))

(if (not (getenv "ACP_EL"))
    (princ "skipped: acp.el (ACP_EL is not set)\n")
  (add-to-list 'load-path (getenv "ACP_EL"))
  (require 'acp)
  (test-acp (car (last command-line-args))))

;; The rest of the command line is not for Emacs.
(kill-emacs 0)

;;; emacs.el ends here
